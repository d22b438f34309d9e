"""Periodicity of loops: what programs that differ in iteration counts have in common (``Program.rounds``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace


@dataclass(slots=True)
class LongLoop:
    """A long loop: its lower bound, and the numbers of irregular iterations at its beginning and its end."""

    low: int = 0
    ahead: int = 0
    behind: int = 0
    count: int | None = None
    """The iteration count, if it is a literal."""


@dataclass(frozen=True, slots=True)
class LoopPeriodicity:
    """The periodicity of loops with N iterations, N being a parameter or a large number.

    The code of iterations that are ``period`` apart is equal, except for the first and the last ones (``loops``, by
    location), and so is the code after the loops for numbers that are ``period`` apart. Equal means: up to addresses
    in the global objects of ``growing``, which advance by that many bytes in a period, and up to the ``values`` of
    plain stores: by object ("" if not known), the period of the values, ``None`` if they grow.
    """

    period: int
    growing: dict[str, int]
    loops: dict[Span, LongLoop]
    values: dict[str, int | None] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """The part of ``growing`` that addresses of writes have."""
    coordinates: bool = False
    """Whether coordinates of tensor loads advance as well."""
    counted: bool = False
    """Whether the code after the loops depends on N."""
    least: int = 0
    """The smallest N for which this holds."""
    until: int | None = None
    """The largest one, if it does not hold for all."""
    place: Callable[[int, int], tuple[int, int, int]] | None = None
    """By thread and N: the start and the end of the loop in the code, and the number of operations of a period (0 if
    there is no loop); if not given, ``Thread.rounds`` has them.
    """

    def aperiodic_values(self) -> dict[str, int | None]:
        """The values that differ in iterations that are a period apart."""
        return {name: every for name, every in self.values.items() if every is None or self.period % every}

    def with_period(self, period: int) -> LoopPeriodicity:
        """The same with a multiple of the period, or with a part of it if everything grows linearly."""
        growing, written = (
            {name: by * period // self.period for name, by in some.items()} for some in (self.growing, self.written)
        )
        return replace(self, period=period, growing=growing, written=written)

    @property
    def ahead(self) -> int:
        """The number of irregular iterations at the beginning of the loops."""
        return max((cuts.ahead for cuts in self.loops.values()), default=0)

    def left_out(self, kept: int, every: int, least: int | None = None) -> int:
        """The number of iterations that can be left out after the first ``kept`` ones, a multiple of ``every``, so that
        a period (or ``least`` iterations) and the last ones remain; for loops with literal bounds.
        """
        ends = min(cuts.count - cuts.behind for cuts in self.loops.values() if cuts.count is not None)
        return max(ends - kept - (self.period if least is None else least), 0) // every * every


class Aperiodic(Exception):
    """Raised for what prevents periodicity, at ``span``; ``turn`` is the iteration, or the N, from which on the code is
    periodic, if known. ``known`` are answers for numbers that are proved nevertheless.
    """

    known: Mapping[int, Any] = {}

    def __init__(self, what: str, span: Span | None = None, turn: int | None = None) -> None:
        where = f" (line {span.line})" if span is not None else ""
        super().__init__(f"{what}{where}")
        self.span = span
        self.turn = turn
