"""Asynchronous operations: copies and stores, wgmma, tensor memory, and the groups in which they complete."""

from __future__ import annotations

from typing import ClassVar

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr
from mcheck.ir.ops.memory import Multimem
from mcheck.ir.ops.operation import Facets, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class CpAsync(Op):
    """``cp.async``: global to shared::cta, ``size`` 4, 8 or 16; ``src_size`` bytes are read, the rest is zero."""

    facets: ClassVar[Facets] = Facets(reads=("src",), writes=("dst",), asynchronous=True, copies=True)
    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size", "src_size", "ignore_src")

    dst: Expr
    src: Expr
    size: Expr
    src_size: Expr | None = None
    ignore_src: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Op):
    """``cp.async.commit_group`` (``bulk`` false), ``cp.async.bulk.commit_group``, ``wgmma.commit_group`` by
    ``family``.
    """

    facets: ClassVar[Facets] = Facets()

    family: str  # cp.async, bulk, wgmma


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroup(Op):
    """``…wait_group{.read} pending``; ``cp.async.wait_all`` and ``tcgen05.wait`` have ``commits`` set and ``pending``
    0. ``restrict`` is ``proxy::async`` where that proxy alone observes the wait.
    """

    facets: ClassVar[Facets] = Facets(blocks=True)
    decisive: ClassVar[tuple[str, ...]] = ("pending",)

    family: str  # cp.async, bulk, wgmma, tcgen05.ld, tcgen05.st
    pending: Expr
    read: bool = False
    commits: bool = False
    restrict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpAsyncArrive(Op):
    """``cp.async.mbarrier.arrive{.noinc}``."""

    facets: ClassVar[Facets] = Facets(mbarrier="address", signals=True, asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr
    noinc: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkCopy(Op):
    """``cp.async.bulk`` and, with ``reduce``, ``cp.reduce.async.bulk``.

    ``mbar`` is given for the mbarrier mechanism, ``None`` for the bulk group. ``cta_mask`` (multicast) has a bit per
    ``%cluster_ctarank``; ``byte_mask`` a bit per byte of every 16-byte chunk. ``reduce`` is an ``Atomic``-like
    operation
    name (``add min max inc dec and or xor``) on elements of ``type``, relaxed at ``scope``, or at the model's. A copy
    with a ``scope`` is strong: its reads and writes of elements of ``type`` are relaxed at it. ``multimem`` is that of
    the destination.
    """

    facets: ClassVar[Facets] = Facets(
        reads=("src",), writes=("dst",), mbarrier="mbar", signals=True, asynchronous=True, copies=True
    )
    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size", "mbar", "cta_mask", "byte_mask")

    dst: Expr
    src: Expr
    size: Expr
    dst_space: str
    src_space: str
    mbar: Expr | None = None
    cta_mask: Expr | None = None
    byte_mask: Expr | None = None
    reduce: str | None = None
    type: str | None = None
    noftz: bool = False
    scope: str | None = None
    multimem: Multimem | None = None

    @property
    def is_strong(self) -> bool:
        """Whether it copies by strong accesses (PTX ISA 9.4, 9.7.10.28.4.1)."""
        return self.scope is not None and self.reduce is None

    @property
    def is_plain(self) -> bool:
        """Whether it copies by weak accesses, to one place."""
        return self.scope is None and self.reduce is None and self.multimem is None and self.cta_mask is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch(Op):
    """``cp.async.bulk.prefetch`` (``size``) and ``cp.async.bulk.prefetch.tensor`` (``tensor_map``): no memory
    effect.
    """

    facets: ClassVar[Facets] = Facets()
    decisive: ClassVar[tuple[str, ...]] = ("src", "size", "tensor_map")

    src: Expr | None = None
    size: Expr | None = None
    tensor_map: Expr | None = None
    coords: tuple[Expr, ...] = ()
    mode: str = "tile"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCopy(Op):
    """``cp.async.bulk.tensor`` and, with ``reduce``, ``cp.reduce.async.bulk.tensor``.

    ``kind`` is ``load`` (global to shared, ``dst_space`` shared::cta or shared::cluster, ``mbar``) or ``store``
    (shared::cta to global, bulk group). ``shared`` is the address in shared memory, ``tensor_map`` that of the map.
    ``mode``: tile, tile::gather4, tile::scatter4, im2col, im2col::w, im2col::w::128, im2col_no_offs.
    ``unplaced``: nobody knows where in the tensor; of its accesses there are those of shared memory only.
    """

    facets: ClassVar[Facets] = Facets(
        reads=("tensor_map", "shared"),
        writes=("shared", "tensor_map"),
        mbarrier="mbar",
        signals=True,
        asynchronous=True,
        copies=True,
    )
    decisive: ClassVar[tuple[str, ...]] = ("shared", "tensor_map", "coords", "mbar", "im2col_info", "cta_mask")

    kind: str
    dim: int
    mode: str
    shared: Expr
    tensor_map: Expr
    coords: tuple[Expr, ...]
    dst_space: str = "shared::cluster"
    mbar: Expr | None = None
    im2col_info: tuple[Expr, ...] = ()
    cta_mask: Expr | None = None
    cta_group: int = 1
    reduce: str | None = None
    unplaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncStore(Op):
    """``st.async`` and, with ``reduce``, ``red.async``: to shared::cluster with ``mbar`` (weak, or relaxed.cluster
    reductions);

    the ``.release.{gpu,sys}.global`` forms have no ``mbar`` and a ``sem`` and ``scope``.
    """

    facets: ClassVar[Facets] = Facets(writes=("address",), mbarrier="mbar", signals=True, asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("address", "mbar")

    address: Expr
    srcs: tuple[Expr, ...]
    type: str
    mbar: Expr | None = None
    reduce: str | None = None
    sem: str = "weak"
    scope: str | None = None
    space: str = "shared::cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapReplace(Op):
    """``tensormap.replace.tile.field.space.b1024.type [address]{, ord}, value``: a weak write of the 128-byte
    object.
    """

    facets: ClassVar[Facets] = Facets(reads=("address",), writes=("address",))
    decisive: ClassVar[tuple[str, ...]] = ("address", "value", "ordinal")

    field_name: str
    address: Expr
    value: Expr
    ordinal: Expr | None = None
    type: str = "b32"
    space: str = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapCopyFence(Op):
    """``tensormap.cp_fenceproxy``: copies 128 bytes shared::cta to global, then the tensormap release at ``scope``."""

    facets: ClassVar[Facets] = Facets(reads=("src",), writes=("dst",), copies=True)
    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size")

    dst: Expr
    src: Expr
    size: Expr
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wgmma(Op):
    """``wgmma.mma_async``: an asynchronous read of the byte ranges ``reads`` (address, size) through the async
    proxy.
    """

    facets: ClassVar[Facets] = Facets(reads=("reads",), asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("reads",)

    reads: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WgmmaFence(Op):
    """``wgmma.fence``: what precedes it in its thread is ordered before the reads of the wgmma that follow."""

    facets: ClassVar[Facets] = Facets()


# --- tensor memory ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCore(Op):
    """``tcgen05.mma``, ``cp`` and ``shift``: asynchronous, in the order in which their thread issues them, complete
    when a ``TensorCommit`` of the thread says so; ``alloc`` and ``dealloc``, which are over at once.

    ``reads`` and ``writes`` are ranges (address, size) of shared and tensor memory, all through the async proxy.
    ``wrong`` says what forbids an ``alloc`` or ``dealloc``, or what is wrong at the ``end``: a code of
    ``mcheck.findings.catalogue`` and a sentence. Who follows the kernel knows. ``columns`` are those that an ``alloc``
    or ``dealloc`` of a sketch names.
    """

    facets: ClassVar[Facets] = Facets(reads=("reads",), writes=("writes",), asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("reads", "writes")

    kind: str  # mma cp shift alloc dealloc end
    reads: tuple[tuple[Expr, Expr], ...]
    writes: tuple[tuple[Expr, Expr], ...]
    wrong: tuple[str, str | Phrase] | None = None
    columns: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMove(Op):
    """What one lane does of ``tcgen05.ld`` or ``st``: ``size`` bytes of tensor memory are read or written, until
    ``tcgen05.wait`` (a ``WaitGroup`` of the family). ``apart``, as decoded, are the bytes from there to a second
    access; whoever places the accesses of the lanes makes two operations of it. ``wrong`` as of a ``TensorCore``.
    """

    facets: ClassVar[Facets] = Facets(reads=("address",), writes=("address",), asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("address",)

    family: str  # tcgen05.ld, tcgen05.st
    address: Expr
    size: int
    apart: Expr | None = None
    wrong: tuple[str, str | Phrase] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCommit(Op):
    """``tcgen05.commit``: an arrive-on, on the mbarrier or on those of ``cta_mask``, once all earlier ``TensorCore``
    operations of the thread are complete. ``wrong`` as of a ``TensorCore``.
    """

    facets: ClassVar[Facets] = Facets(mbarrier="address", signals=True, asynchronous=True)
    decisive: ClassVar[tuple[str, ...]] = ("address", "cta_mask")

    address: Expr
    cta_mask: Expr | None = None
    wrong: tuple[str, str | Phrase] | None = None
