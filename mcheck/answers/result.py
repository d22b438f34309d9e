"""The answer of an engine about one program under one model."""

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
    """What the states of one condition are sorted by: numbers by value, then what is unknown."""
    return [(isinstance(value, str), value) for _, value in state]


def sort_by_state(items: Iterable[T], state: Callable[[T], State]) -> list[T]:
    """``items`` by the ``state_sort_key`` of their states, of which there may be many, mostly of numbers alone."""
    given = list(items)
    try:
        return sorted(given, key=lambda item: [value for _, value in state(item)])
    except TypeError:  # a number beside what is unknown
        return sorted(given, key=lambda item: state_sort_key(state(item)))


NOT_UNDEFINED = frozenset({"RACE001", "RACE010"})
"""Flags about generic accesses of one size: such races do not void the axioms (PTX ISA 8.7.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One final state, how many executions (up to equivalence) give it, and one of them step by step."""

    state: State
    executions: int = 1
    witness: Trace = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Covers:
    """Of how many ``clusters`` of the grid of a launch an answer speaks; so many were followed ``together``."""

    clusters: int
    of: int
    together: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine says of a program under a model, the same for every engine and every question.

    ``verdict``: pass, fail or unknown where the condition or liveness was asked for; proved, bounded, finding or
    unknown where findings were (``mcheck.answers.verdict_rules``). ``reasons`` are given where it is not plain.

    ``outcomes`` are sorted; ``complete`` says that they are all. ``covered``: no execution was left out that could add
    a finding; the reasons name the bound, if that is why. ``undefined``: some execution has undefined
    behaviour, so the verdict follows interface.md (``exists`` passes, the others fail). ``executions`` counts those
    looked at. ``forbidden_by`` are the axioms that some execution fails by.
    ``chosen`` is why this engine was asked. ``cut``: with more time or memory there might be more to say, as where one
    of the reasons says so; whoever meets the end of a time that leaves no reason behind says it here. ``covers`` is
    given for a launch. ``ends``: some execution ends, as far as is known; given for programs without a condition.
    """

    verdict: Verdict
    outcomes: tuple[Outcome, ...] = ()
    complete: bool = True
    undefined: bool = False
    findings: tuple[Finding, ...] = ()
    covered: bool = True
    assumptions: tuple[str, ...] = ()
    executions: int = 0
    engine: str = "explicit"
    reasons: Reasons = ()
    forbidden_by: tuple[str, ...] = ()
    ends: bool = True
    chosen: str = ""
    cut: bool = False
    covers: Covers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        if not self.cut and is_cut(self.reasons):
            object.__setattr__(self, "cut", True)

    @property
    def reason(self) -> str | None:
        """The reasons in words."""
        return format_reasons(self.reasons)
