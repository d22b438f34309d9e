"""The launch of a kernel: its shape, its parameters byte by byte, and what their pointers and tensor maps point to; and
several launches in stream order.

Everything here has been validated; ``mcheck.frontend.ptx.launch_reader`` reads a launch from JSON and checks it against
a module, ``mcheck.frontend.ptx.launch_sequence_reader`` several of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import prod

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.known_contents import Contents, Memory
from mcheck.ir.memory import TensorMapSpec

Extent = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Global memory of ``size`` bytes (``None``: unknown); a pointer points ``offset`` bytes behind its beginning.

    ``initial`` are its first bytes; the contents after them are unknown. Among them are ``pointers``, by offset.
    ``maps`` are the tensor maps that lie in it, where a parameter points to them. ``declared``: a launch file declares
    it, on ``gpu``, so other launches may point to it too; ``peers`` are the other GPUs that may access it
    (``None``: all). ``copies`` are the buffers of which it is the multicast mapping, whose addresses are multimem
    addresses (PTX ISA 8.2.3).
    """

    name: str
    size: int | None
    initial: bytes = b""
    maps: tuple[Map, ...] = ()
    declared: bool = False
    gpu: int = 0
    pointers: tuple[tuple[int, Buffer], ...] = ()
    offset: int = 0
    peers: tuple[int, ...] | None = None
    copies: tuple[Buffer, ...] = ()

    @property
    def gpus(self) -> frozenset[int] | None:
        """The GPUs that may access it; ``None``: all."""
        return None if self.peers is None else frozenset((self.gpu, *self.peers))


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map over ``buffer``; the ``global_address`` of ``spec`` is 0, because buffers have no addresses here."""

    spec: TensorMapSpec
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class AnyNumber:
    """A parameter that may be any number from 0 on. ``stand_ins`` are the rows of the registers whose values stand for
    others, and of those that depend on these: what is the same for all numbers with these values is not so for that
    reason alone.
    """

    stand_ins: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Argument:
    """The value of a parameter of ``size`` bytes.

    ``data`` has ``size`` bytes, of which the half-open ranges ``known`` are given; ``places`` are, by offset, the
    pointers (8 bytes), the tensor maps (128 bytes), or any number (the whole parameter). Bytes in neither are unknown.
    """

    name: str
    size: int
    data: bytes
    known: tuple[tuple[int, int], ...] = ()
    places: tuple[tuple[int, Buffer | Map | AnyNumber], ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def is_given(self) -> bool:
        """Whether the launch gives any part of the parameter."""
        return bool(self.known or self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch of the function ``entry``; ``arguments`` are in the order of its parameters.

    Extents are (x, y, z): ``grid`` in CTAs, ``block`` in threads, ``cluster`` in CTAs. ``shared`` is the dynamic shared
    memory in bytes. ``first`` is a CTA of the cluster that is executed, or of the first cluster of those that are
    executed ``together``: a box, in clusters. A ``group`` names these clusters instead, by their coordinates in
    clusters. ``assume`` are names of ``mcheck.ir.assumptions``. ``cooperative``: all CTAs are resident at the same
    time. ``contents`` are those of memory, when it begins, that are not what is said of its buffers and variables, one
    for each memory. ``programmatic``: it may begin when the launch before it allows that, by griddepcontrol.
    ``beside`` are launches on other GPUs, of copies of their entries (``mcheck.frontend.ptx.module_copies``), whose
    clusters are executed together with those of this one.
    """

    entry: str
    grid: Extent
    block: Extent
    cluster: Extent
    shared: int
    first: Extent
    arguments: tuple[Argument, ...]
    assume: tuple[str, ...] = ()
    gpu: int = 0
    programmatic: bool = False
    cooperative: bool = False
    contents: tuple[Contents, ...] = ()
    together: Extent = (1, 1, 1)
    group: tuple[Extent, ...] | None = None
    beside: tuple[Launch, ...] = ()

    @property
    def concurrent(self) -> tuple[Launch, ...]:
        """The launches that are executed together, each by itself."""
        return (replace(self, beside=()), *self.beside) if self.beside else (self,)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers that the parameters point to or describe, each once."""
        places = [place for argument in self.arguments for _, place in argument.places]
        return tuple(dict.fromkeys(buffer for place in places for buffer in reachable_buffers(place)))

    def contents_of(self, memory: Memory) -> Contents:
        """The contents of a memory when it begins."""
        return next((one for one in self.contents if one.memory == memory), Contents(memory))

    def with_contents(self, *given: Contents) -> Launch:
        """The launch with other contents of some memories when it begins."""
        known = {one.memory: one for one in (*self.contents, *given)}
        return replace(self, contents=tuple(one for one in known.values() if one != Contents(one.memory)))

    @property
    def width(self) -> int:
        """The lanes of a CTA: its threads, rounded up to whole warps; of several launches those of the largest."""
        return max(-(-prod(launch.block) // 32) * 32 for launch in self.concurrent)

    @property
    def cluster_counts(self) -> Extent:
        """The extents of the grid in clusters."""
        x, y, z = (n // c for n, c in zip(self.grid, self.cluster, strict=True))
        return x, y, z

    @property
    def executed_clusters(self) -> tuple[Extent, ...]:
        """The coordinates of the clusters that are executed together, in clusters, x fastest."""
        if self.group is not None:
            return self.group
        x, y, z = (f // c for f, c in zip(self.first, self.cluster, strict=True))
        dx, dy, dz = self.together
        return tuple((x + i, y + j, z + k) for k in range(dz) for j in range(dy) for i in range(dx))

    @property
    def executed_count(self) -> int:
        """The number of clusters that are executed together, of all launches."""
        return sum(len(launch.executed_clusters) for launch in self.concurrent)

    @property
    def total_count(self) -> int:
        """The number of clusters of the grid, or of those of all launches that are executed together."""
        return sum(prod(launch.cluster_counts) for launch in self.concurrent)

    @property
    def is_sample(self) -> bool:
        """Whether the executed clusters are named one by one: some of a grid, without an argument for the others."""
        return any(launch.group is not None for launch in self.concurrent)


def reachable_buffers(place: Buffer | Map | AnyNumber) -> Iterator[Buffer]:
    """The buffers that a place of a parameter leads to, from their beginnings; of memory with tensor maps, those that
    the maps describe.
    """
    match place:
        case Map():
            yield from reachable_buffers(place.buffer)
        case Buffer() if place.maps:
            for held in place.maps:
                yield from reachable_buffers(held)
        case Buffer():
            yield replace(place, offset=0) if place.offset else place
            yield from place.copies
            for _, target in place.pointers:
                yield from reachable_buffers(target)


def cta_name(cluster: Sequence[int], extent: Extent) -> str:
    """The name of a cluster in a grid, whose coordinates are in clusters of this extent: its first CTA."""
    return f"CTA ({', '.join(str(a * b) for a, b in zip(cluster, extent, strict=True))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSequence:
    """Launches in the order of the file: those of one GPU are in one stream, those of different GPUs are concurrent."""

    launches: tuple[Launch, ...]
