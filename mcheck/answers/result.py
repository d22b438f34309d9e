"""``Answer``: what an engine says about one program under one model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from mcheck.base.reasons import Reasons, format_reasons
from mcheck.base.reasons import cut as is_cut
from mcheck.base.records import dataclass
from mcheck.base.verdicts import Verdict
from mcheck.findings.finding import Finding
from mcheck.findings.trace import Trace

Value = int | Literal["unknown"]
State = tuple[tuple[str, Value], ...]
"""A final state: (label, value) pairs in the order of the condition's terms."""


T = TypeVar("T")


def state_sort_key(state: State) -> list[tuple[bool, Value]]:
    """Sort key of the states of one condition: numbers by value, then unknown values."""
    return [(isinstance(value, str), value) for _, value in state]


def sort_by_state(items: Iterable[T], state: Callable[[T], State]) -> list[T]:
    """``items`` sorted by the ``state_sort_key`` of their states; fast for many states of numbers alone."""
    given = list(items)
    try:
        return sorted(given, key=lambda item: [value for _, value in state(item)])
    except TypeError:  # a number beside what is unknown
        return sorted(given, key=lambda item: state_sort_key(state(item)))


NOT_UNDEFINED = frozenset({"RACE001", "RACE010"})
"""Codes of races between generic accesses of one size, which do not void the axioms (PTX ISA 8.7.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One final state: the number of executions (up to equivalence) that end in it, and a witness."""

    state: State
    executions: int = 1
    witness: Trace = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Covers:
    """The part of a launch's grid that an answer covers: ``clusters`` of ``total``, ``together`` of them executed at a
    time.
    """

    clusters: int
    total: int
    together: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyCtas:
    """What an answer covers of a sketch with any number of CTAs: ``every`` number, or those up to ``together``, the
    largest number that was executed at a time.
    """

    every: bool
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAnswer:
    """What is said of one of several launches alone; ``covers`` is the part of its grid."""

    entry: str
    gpu: int
    verdict: Verdict
    covers: Covers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question about a program under a model, the same for every engine.

    ``verdict``: pass, fail or unknown for questions about the condition or liveness; proved, bounded, finding or
    unknown for questions about findings (``mcheck.answers.verdict_rules``). ``reasons`` explain a verdict that is not
    plain.

    ``outcomes`` are sorted; ``complete``: they are all. ``covered``: no execution was left out that could add a
    finding; the reasons name the bound, if there is one. Whoever makes an answer has to say so: without it nothing is
    ``proved``. ``undefined``: some execution has undefined behaviour, so ``exists`` passes and every other condition
    fails. ``executions``: the number explored. ``forbidden_by``: the axioms
    that some execution violates. ``chosen``: why this engine was selected. ``cut``: more time or memory might give
    more, as a reason with ``cut`` says; an engine whose time ends without such a reason sets it. ``covers``: given for
    a launch, ``ctas`` for a sketch with any number of CTAs,
    ``launches`` for several in the order of the file. ``ends``: some execution is known to end; given for
    programs without a condition. ``filled_once``: of a launch, rings in shared memory of which no stage is filled
    twice. ``all_executions``: an engine that follows orders of the steps answers for executions
    that none shows as well.
    """

    verdict: Verdict
    outcomes: tuple[Outcome, ...] = ()
    complete: bool = True
    undefined: bool = False
    findings: tuple[Finding, ...] = ()
    covered: bool = False
    assumptions: tuple[str, ...] = ()
    executions: int = 0
    engine: str = "explicit"
    reasons: Reasons = ()
    forbidden_by: tuple[str, ...] = ()
    ends: bool = True
    chosen: str = ""
    cut: bool = False
    covers: Covers | None = None
    ctas: AnyCtas | None = None
    branches: frozenset[frozenset[tuple[int, int, int]]] = frozenset()
    """The other paths of the program's threads that executions take, each as the values that decide control: by thread
    and branch (``ops.AssumedValue``).
    """
    launches: tuple[LaunchAnswer, ...] = ()
    filled_once: tuple[str, ...] = ()
    all_executions: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        if not self.cut and is_cut(self.reasons):
            object.__setattr__(self, "cut", True)

    @property
    def reason(self) -> str | None:
        """The reasons as text."""
        return format_reasons(self.reasons)
