"""The effect of an operation, as records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.effects.ranges import join_ranges
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics.tensor_footprint import TensorRun, box_bytes, footprint, image_bytes, rows_inside


@dataclass(frozen=True, slots=True)
class Fault:
    """A precondition that the operands violate: a code of ``mcheck.findings.catalogue`` and one sentence."""

    code: str
    message: str | Phrase


@dataclass(frozen=True, slots=True)
class Access:
    """``size`` bytes at an address: one scalar of a load or a store, one operand of wgmma, a tensor map."""

    address: int
    size: int


@dataclass(frozen=True, slots=True)
class Stored:
    """``size`` bytes at an address that an instruction fills with a constant, by a weak write of the generic proxy."""

    address: int
    size: int
    value: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """``size`` bytes at ``dst`` come from ``src`` (``None``: they are filled). Equal sources are read once."""

    src: int | None
    dst: int
    size: int


@dataclass(frozen=True, slots=True)
class Signal:
    """A complete-tx of ``bytes`` on the object at ``mbar``. It tells of the whole operation, or with ``cta`` of its
    reads and of what it writes in the shared memory of the CTA of that number.
    """

    mbar: int
    bytes: int
    cta: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The bytes of a tensor copy, from or to each of ``targets`` in shared memory; ``mode``, ``coords`` and ``info``
    are those of the instruction.
    """

    spec: TensorMapSpec
    mode: str
    kind: str
    coords: tuple[int, ...]
    info: tuple[int, ...]
    reduce: str | None
    targets: tuple[int, ...]

    def runs(self) -> Iterator[Run]:
        """The runs of all targets, one target after the other."""
        first = self.targets[0]
        # A target lies at the same place of every CTA's window, so one footprint serves all.
        here = footprint(self.spec, self.mode, self.coords, first, kind=self.kind, info=self.info, reduce=self.reduce)
        for target in self.targets:
            for piece in here:
                yield self._run(target, piece)

    def rows(self) -> tuple[tuple[int, int], ...]:
        """(address, size) of the bytes inside the tensor, in as few ranges as they make."""
        return join_ranges(rows_inside(self.spec, self.mode, self.coords, self.info))

    def image(self) -> tuple[tuple[int, int], ...]:
        """(address, size) of the bytes in shared memory, in as few ranges as they make."""
        size = box_bytes(self.spec, self.mode, self.info)
        first = self.targets[0]
        whole = self.kind == "load" or sum(n for _, n in self.rows()) == size
        if whole and image_bytes(self.spec, self.mode, first, self.info) == size:  # no gaps; a swizzle permutes it
            return tuple((target, size) for target in self.targets)
        here = ((run.dst if self.kind == "load" else run.src, run.size) for run in self.runs())
        return join_ranges((at, n) for at, n in here if at is not None)

    def _run(self, target: int, piece: TensorRun) -> Run:
        rows_inside = target + piece.offset
        if self.kind == "load":
            return Run(piece.address, rows_inside, piece.length)
        assert piece.address is not None, "a store skips what is outside the tensor"
        return Run(rows_inside, piece.address, piece.length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the instruction does. With ``faults`` it is undefined, and the rest is what it would do all the same.

    ``accesses`` are those of a generic instruction or of wgmma, ``runs`` what an asynchronous copy moves (a tensor copy
    has a ``box`` instead, ``moved`` knows both); of a reduction a run is combined into its destination.
    ``stores`` are for instructions without a handler of their own, which the effect says all of, and those on tensor
    memory.
    ``mbarrier`` is the object that an mbarrier instruction works on. ``result`` is the value that it computes.
    """

    faults: tuple[Fault, ...] = ()
    accesses: tuple[Access, ...] = ()
    stores: tuple[Stored, ...] = ()
    runs: tuple[Run, ...] = ()
    box: Box | None = None
    signals: tuple[Signal, ...] = ()
    mbarrier: int | None = None
    result: int | None = None

    def moved(self) -> Iterator[Run]:
        """The runs of bytes that a copy moves."""
        return self.box.runs() if self.box is not None else iter(self.runs)


@dataclass(slots=True)
class Faults:
    """The violated preconditions, in the order in which they are checked."""

    found: list[Fault] = field(default_factory=list)

    def add(self, code: str, message: str | Phrase) -> None:
        """Add a violated precondition."""
        self.found.append(Fault(code, message))

    def require(self, holds: bool, code: str, message: str | Phrase) -> bool:
        """Add a fault if a precondition does not hold; returns whether it holds."""
        if not holds:
            self.add(code, message)
        return holds

    def __bool__(self) -> bool:
        return bool(self.found)

    def all(self) -> tuple[Fault, ...]:
        """All of them."""
        return tuple(self.found)
