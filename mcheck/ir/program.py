"""A Program: what every container is translated to and every engine starts from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import field, replace
from typing import Final, Protocol

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.assumptions import Assumptions
from mcheck.ir.condition import Condition
from mcheck.ir.loop_unrolling import Rounds
from mcheck.ir.memory import Cta, MemoryMap
from mcheck.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread runs. ``cta`` is the CTA with its gpu, cluster and rank; ``warp`` and ``lane`` are numbers in
    it.
    """

    cta: Cta
    warp: int
    lane: int

    @property
    def own_warp(self) -> tuple[int, int]:
        """The numbers of the CTA and of the warp, which name the warp in the program."""
        return self.cta.number, self.warp

    @property
    def warpgroup(self) -> tuple[int, int]:
        """The CTA and the warpgroup: four warps that follow each other, the first a multiple of four (9.7.15)."""
        return self.cta.number, self.warp // 4


@dataclass(frozen=True, slots=True)
class Turns:
    """Which round of which loops the operations of a code of this ``length`` belong to: from ``starts[k]`` on,
    ``texts[k]``, as in ``k=3``.
    """

    length: int
    starts: tuple[int, ...]
    texts: tuple[str, ...]

    def at(self, place: int) -> str:
        """The round of the operation at a place; empty outside of loops."""
        k = bisect_right(self.starts, place) - 1
        return self.texts[k] if k >= 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A declared thread. ``name`` is how results call it: ``P0``, or ``role`` if its role has one thread, ``role[3]``
    otherwise.

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
    turns: Turns | None = field(default=None, compare=False, repr=False)
    rounds: dict[Span, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Where in the code the rounds of its loops begin that are in no other, and where the last one ends; kept for those
    who ask how often loops run (``Program.rounds``).
    """


Kinds = tuple[tuple[str, ...], ...]
"""The kinds of findings of each ``expect`` line, of which one is expected."""
CLEAN: Final[Kinds] = (("clean",),)


def describe_kinds(kinds: Kinds) -> str:
    """``race | deadlock, undefined``: one of the first two, and the third."""
    return ", ".join(" | ".join(line) for line in kinds)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the file expects: ``verdict`` pass or fail, and of each of ``kinds`` one (``clean`` alone, or any of race,
    undefined, deadlock).
    """

    verdict: str | None = None
    kinds: Kinds = ()
    span: Span | None = field(default=None, compare=False)


class Terms(Protocol):
    """What findings call the memory of a program whose declarations say little of it."""

    def label(self, address: int) -> str | None:
        """The object, or part of one, at an address; ``None`` if it has none."""

    def slot(self, op: Op) -> str:
        """Which part of its buffer a copy fills, as ``stage 2 of 4``; empty if there is no more to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A litmus test or a kernel sketch.

    ``dialect`` is true for the table form, whose barriers and registers follow the peers' rules.
    ``locations`` are the terms of a ``locations [...]`` line. ``warnings`` are rendered by the reports. ``assumptions``
    are those that an answer is asked to make.
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
    free: str | None = None
    """A constant that is every number from 0 on; this is the program with one of them."""
    sized: Callable[[int], Program] | None = field(default=None, compare=False, repr=False)
    """The program with another one."""
    rounds: Callable[[], Rounds] | None = field(default=None, compare=False, repr=False)
    """How the programs with all of them repeat; raises ``Aperiodic``."""
    long: Long | None = field(default=None, compare=False, repr=False)
    """What this is a small part of: the program that is meant has loops that run often."""

    terms: Terms | None = field(default=None, compare=False, repr=False)
    """What findings call addresses, if not by their objects and elements."""
    _operations: list[tuple[Op, ...]] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def operations(self) -> tuple[Op, ...]:
        """The operations of all threads, each object once, which is how threads of one code share them."""
        if not self._operations:  # there may be a hundred thousand, and many ask
            found: dict[int, Op] = {}
            for t in self.threads:
                found.update(zip(map(id, t.code), t.code, strict=True))
            self._operations.append(tuple(found.values()))
        return self._operations[0]

    def assuming(self, names: tuple[str, ...]) -> Program:
        """The program under further assumptions (``mcheck.ir.assumptions``), by their names."""
        return replace(self, assumptions=self.assumptions.and_(names)) if names else self


@dataclass(frozen=True, slots=True)
class Long:
    """A program whose loops run so often that most of it is better left out (``Program.long``)."""

    rounds: Rounds
    without: Callable[[int, int], Program]
    """By two numbers k and d, the program whose long loops leave out d rounds behind the first k."""
    whole: Callable[[], Program]
