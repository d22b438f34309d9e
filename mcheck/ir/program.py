"""The program: the common input of all engines, to which all frontends translate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import field
from typing import Final, Protocol

from mcheck.base.errors import Span
from mcheck.base.phrase import Stage, Thing
from mcheck.base.records import dataclass, replace
from mcheck.ir.assumptions import Assumptions
from mcheck.ir.condition import Condition
from mcheck.ir.cta_family import CtaFamily
from mcheck.ir.loop_unrolling import LoopPeriodicity
from mcheck.ir.memory import Cta, MemoryMap
from mcheck.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a thread: ``cta`` with its gpu, cluster and rank; ``warp`` and ``lane`` are numbers within it."""

    cta: Cta
    warp: int
    lane: int

    @property
    def own_warp(self) -> tuple[int, int]:
        """The numbers of the CTA and of the warp, which identify the warp in the program."""
        return self.cta.number, self.warp

    @property
    def warpgroup(self) -> tuple[int, int]:
        """The CTA and the warpgroup: four warps that follow each other, the first a multiple of four (9.7.15)."""
        return self.cta.number, self.warp // 4


@dataclass(frozen=True, slots=True)
class LoopIterations:
    """The loop iterations of the operations of a code of this ``length``: from ``starts[k]`` on, ``texts[k]``, as in
    ``k=3``.
    """

    length: int
    starts: tuple[int, ...]
    texts: tuple[str, ...]

    def label_at(self, place: int) -> str:
        """The loop iteration of the operation at a position; empty outside of loops."""
        k = bisect_right(self.starts, place) - 1
        return self.texts[k] if k >= 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread. ``name`` is its name in results: ``P0``, or ``role`` if its role has one thread, else ``role[3]``.

    ``code`` is fully resolved for this thread (loops of constant bounds unrolled, names and special registers folded);
    ``labels`` maps a label to its index in ``code``. ``init`` holds initial register values; all others start at 0
    in the table dialect and unknown elsewhere. ``types`` gives each register's PTX type (declared, or that of its
    first use).
    """

    index: int
    role: str
    number: int
    name: str
    place: Place
    code: tuple[Op, ...]
    labels: dict[str, int]
    init: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    iterations: LoopIterations | None = field(default=None, compare=False, repr=False)
    rounds: dict[Span, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    """The positions at which the iterations of its outermost loops begin, and the end of the last one; only kept for
    proofs about iteration counts (``Program.rounds``).
    """


Kinds = tuple[tuple[str, ...], ...]
"""For each ``expect`` line, the kinds of findings of which at least one is expected."""
CLEAN: Final[Kinds] = (("clean",),)


def describe_kinds(kinds: Kinds) -> str:
    """The kinds as text: ``race | deadlock, undefined`` for one of the first two, and the third."""
    return ", ".join(" | ".join(line) for line in kinds)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expectation of a file: ``verdict`` pass or fail, and one finding of each of ``kinds`` (``clean`` alone, or
    any of race, undefined, deadlock).
    """

    verdict: str | None = None
    kinds: Kinds = ()
    span: Span | None = field(default=None, compare=False)


class AddressNames(Protocol):
    """Names of addresses in findings, for a program whose declarations do not give them."""

    def thing_at(self, address: int) -> Thing | None:
        """The object, or part of one, at an address; ``None`` if it has none."""

    def slot(self, op: Op) -> Stage | None:
        """The stage of its buffer that a copy fills; ``None`` if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program: a litmus test, a kernel sketch or a PTX module with its launch.

    ``dialect`` is true for the table form, whose barriers and registers follow the peers' rules.
    ``locations`` are the terms of a ``locations [...]`` line. ``warnings`` are rendered by the reports. ``assumptions``
    are those that the user asked for.
    """

    path: str
    name: str
    doc: tuple[str, ...] = ()
    model: str | None = None
    model_span: Span | None = None
    target: str | None = None
    dialect: bool = False
    clustered: bool = False
    memory: MemoryMap
    threads: tuple[Thread, ...]
    condition: Condition
    expectation: Expectation = Expectation()
    warnings: tuple[tuple[str, Span | None], ...] = ()
    assumptions: Assumptions = field(default_factory=Assumptions)
    source: str = field(default="", compare=False, repr=False)
    parameter: str | None = None
    """The parameter: a constant that is any number from 0 on; this is the program for one of them."""
    instance: Callable[[int], Program] | None = field(default=None, compare=False, repr=False)
    """The instance of the program for a value of the parameter."""
    rounds: Callable[[], LoopPeriodicity] | None = field(default=None, compare=False, repr=False)
    """The periodicity of the instances; raises ``Aperiodic``."""
    early_rounds: Callable[[], LoopPeriodicity] | None = field(default=None, compare=False, repr=False)
    """That of the instances with so few iterations that no comparison has changed its result; raises ``Aperiodic``."""
    family: Callable[[], CtaFamily] | None = field(default=None, compare=False, repr=False)
    """The CTAs that are alike, if the parameter is their number; raises ``NotAlike``."""
    shortened: ShortenedLoops | None = field(default=None, compare=False, repr=False)
    """Set if iterations of long loops are left out here: how to get the program with more of them."""

    terms: AddressNames | None = field(default=None, compare=False, repr=False)
    """Names of addresses in findings, if not those of objects and elements."""
    _operations: list[tuple[Op, ...]] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def operations(self) -> tuple[Op, ...]:
        """The operations of all threads, each object once: threads with the same code share them."""
        if not self._operations:  # cached: there may be a hundred thousand
            found: dict[int, Op] = {}
            for t in self.threads:
                found.update(zip(map(id, t.code), t.code, strict=True))
            self._operations.append(tuple(found.values()))
        return self._operations[0]

    def with_assumptions(self, names: tuple[str, ...]) -> Program:
        """The program under further assumptions (``mcheck.ir.assumptions``), by their names."""
        return replace(self, assumptions=self.assumptions.extended_by(names)) if names else self


@dataclass(frozen=True, slots=True)
class ShortenedLoops:
    """A program with long loops, most of whose iterations can be left out (``Program.shortened``)."""

    rounds: LoopPeriodicity
    without: Callable[[int, int], Program]
    """By two numbers k and d: the program whose long loops skip d iterations after the first k."""
    whole: Callable[[], Program]
