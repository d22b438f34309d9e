"""The executions behind an answer, for those who draw or explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.answers.result import State
from mcheck.base.records import dataclass
from mcheck.events.choices.candidate import Candidate, Choice
from mcheck.events.structure import Structure
from mcheck.findings.finding import Finding

if TYPE_CHECKING:
    from mcheck.events.choices.prepared import Prepared
    from mcheck.ir.condition import Compare
    from mcheck.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Shown:
    """An execution that shows a finding: ``note`` is said of the events ``marked``; ``stops`` are threads that end at
    an operation that gave no event, with what is said of it.
    """

    prepared: Prepared
    candidate: Candidate
    marked: tuple[int, ...] = ()
    note: str = ""
    stops: tuple[tuple[int, Op, str], ...] = ()


def _none() -> Iterator[tuple[Structure, list[Choice]]]:
    return iter(())


@dataclass(slots=True)
class Kept:
    """``outcomes``: one execution of each state; ``findings``: one that shows the finding.

    ``combinations`` gives every event structure of the program anew, ``restrict`` keeps of one only what the
    comparisons of a clause allow (and says whether anything is left).
    """

    outcomes: dict[State, tuple[Prepared, Candidate]] = field(default_factory=dict)
    findings: dict[Finding, Shown] = field(default_factory=dict)
    combinations: Callable[[], Iterator[tuple[Structure, list[Choice]]]] = _none
    restrict: Callable[[Structure, list[Choice], list[Compare]], bool] = lambda _s, _choices, _clause: True
