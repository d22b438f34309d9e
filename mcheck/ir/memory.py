"""Memory objects and the flat address map.

Every object instance has a concrete base address, so pointers are plain integers and address
arithmetic is integer arithmetic in every state space:

* ``.global``/``.const``/``.param`` objects start at ``GLOBAL_BASE``, in declaration order, each aligned as declared
  (at least to 256 bytes), with a gap after each so that an access past its end is outside of every object;
* CTA number c (``Cta.number``) has its shared window at ``SHARED_BASE + c * SHARED_WINDOW``; an object has the same
  offset in every window, so ``mapa`` only replaces the window. A shared::cta address is the address in the own window,
  which is also its shared::cluster and its generic address;
* the tensor memory of a CTA is in its window too, lane by lane, each with its columns one after the other.

A generic alias of the table dialect has an address of its own and ``physical`` names what it aliases;
a texture, surface or constant alias shares the address of its target.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.phrase import Thing
from mcheck.base.records import dataclass

GLOBAL_BASE = 0x1_0000_0000
SHARED_BASE = 0x100_0000_0000
SHARED_WINDOW = 0x100_0000
TENSOR_OFFSET = 0x80_0000
"""The offset of a CTA's tensor memory in its window: not reachable by addresses of shared memory."""
TENSOR_MEMORY = "tensor memory"
"""The name of the tensor memory object."""
CANCEL_RESPONSES = "clusterlaunchcontrol responses"
"""The name of the object with what ``clusterlaunchcontrol.try_cancel`` may answer."""
MBARRIER_BYTES = 8
"""The size of an mbarrier object (PTX ISA 9.7.13.15.1)."""
TENSOR_LANES = 128
TENSOR_COLUMNS = 512
CELL = 4
"""Bytes of a cell of tensor memory (PTX ISA 9.7.16.1)."""
TENSOR_ROW = TENSOR_COLUMNS * CELL
TENSOR_SIZE = TENSOR_LANES * TENSOR_ROW


@dataclass(frozen=True, slots=True)
class TensorMapSpec:
    """A declared tensor map, by the field names of ``tensormap.replace`` (interface.md).

    ``global_address`` is an address, ``global_stride`` is in bytes (rank - 1 entries), ``box_dim``/``element_stride``
    in elements.
    For im2col maps ``box_dim`` is empty and the four im2col fields are set.
    """

    global_address: int
    elemtype: str
    rank: int
    global_dim: tuple[int, ...]
    global_stride: tuple[int, ...]
    element_stride: tuple[int, ...]
    box_dim: tuple[int, ...] = ()
    interleave_layout: str = "none"
    swizzle_mode: str = "none"
    swizzle_atomicity: str = "16B"
    fill_mode: str = "zero"
    pixel_box_lower_corner: tuple[int, ...] = ()
    pixel_box_upper_corner: tuple[int, ...] = ()
    channels_per_pixel: int | None = None
    pixels_per_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemObject:
    """A memory object: ``elem`` is its PTX element type, ``dims`` its array shape (empty: a scalar), ``size`` in bytes.

    ``init`` is its initial content (``None``: unknown, as of ``.shared``), ``held`` the known parts of a content that
    is not known as a whole: bytes by their offset. ``dialect`` marks a location of the table dialect (32 bits).
    ``alias_of`` and ``alias_proxy`` represent ``y @ generic aliases x``. ``copies`` are the objects that have the bytes
    of a multimem object, which stands for all of them: it is an alias of the first one. ``gpus`` are those that may
    access it (``None``: all). ``earlier_grid`` says what the grid in front, which may still run, does with it:
    ``writes`` or ``reads``.
    """

    name: str
    space: str  # global shared const param tensor
    elem: str
    elem_size: int
    dims: tuple[int, ...] = ()
    align: int = 1
    size: int
    init: bytes | None = None
    held: tuple[tuple[int, bytes], ...] = ()
    tensor_map: tuple[TensorMapSpec, ...] = ()
    dialect: bool = False
    alias_of: str | None = None
    alias_proxy: str | None = None
    copies: tuple[str, ...] = ()
    gpus: frozenset[int] | None = None
    earlier_grid: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cta:
    """A CTA with at least one thread: its number in the address map and its place (``rank`` within its cluster)."""

    number: int
    gpu: int
    cluster: int
    rank: int


@dataclass(frozen=True, slots=True)
class Instance:
    """An object in one CTA, or a global one: ``base`` is its (virtual) address, ``physical`` that of its bytes."""

    object: MemObject
    base: int
    physical: int
    cta: Cta | None = None

    @property
    def label(self) -> str:
        """``buf@0`` for shared objects (the CTA's rank in its cluster), else the plain name."""
        return str(self.thing())

    def thing(self, part: str = "") -> Thing:
        """The object, or a part of it, as messages name it."""
        return Thing(self.object.name, None if self.cta is None else self.cta.rank, part)


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """The address map: all instances, sorted by base address; built by ``mcheck.ir.address_map``."""

    instances: tuple[Instance, ...]

    def find(self, address: int) -> Instance | None:
        """The instance that holds the byte at ``address``, or ``None``."""
        for instance in self.instances:
            if instance.base <= address < instance.base + instance.object.size:
                return instance
        return None

    def instance_of(self, name: str, cta: Cta | None = None) -> Instance | None:
        """The instance of object ``name``: that of ``cta`` for a shared one, the only one otherwise."""
        for instance in self.instances:
            if instance.object.name == name and instance.cta in (None, cta):
                return instance
        return None
