"""The executions behind an answer, for drawing and explanation."""

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
    """An execution that shows a finding.

    ``note`` is the text for the events ``marked``; ``stops`` are threads that stop at an operation without events, with
    a text.
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
    """Example executions of an answer: ``outcomes``, one of each state, and ``findings``, one that shows each finding.

    ``combinations`` yields every event structure of the program anew; ``restrict`` keeps only what the comparisons of a
    clause permit (and says whether anything remains).
    """

    outcomes: dict[State, tuple[Prepared, Candidate]] = field(default_factory=dict)
    findings: dict[Finding, Shown] = field(default_factory=dict)
    combinations: Callable[[], Iterator[tuple[Structure, list[Choice]]]] = _none
    restrict: Callable[[Structure, list[Choice], list[Compare]], bool] = lambda _s, _choices, _clause: True
