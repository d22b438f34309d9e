"""What programs that differ in how often their loops run have in common (``Program.rounds``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from mcheck.base.errors import Span
from mcheck.base.records import dataclass


@dataclass(slots=True)
class Cuts:
    """A long loop: its first number, and the rounds at its beginning and its end that are like no others."""

    low: int = 0
    ahead: int = 0
    behind: int = 0
    count: int | None = None
    """How many rounds there are, where that is written."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Loops that run as often as a number says: N for short.

    Code is alike in rounds that are ``period`` apart, but for the first and the last ones (``loops``, by where they
    stand), and so is what comes behind the loops for numbers that are: equal but for addresses in the global objects
    that ``growing`` names, which go on by so many bytes in a period, and for ``values`` that plain stores write: by the
    object ("" where it is not known), after how many rounds they repeat, ``None`` if they grow.
    """

    period: int
    growing: dict[str, int]
    loops: dict[Span, Cuts]
    values: dict[str, int | None] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """What of ``growing`` are addresses to which something is written."""
    coordinates: bool = False
    """Whether coordinates of tensor maps that are loaded from go on as well."""
    counted: bool = False
    """Whether what comes behind the loops depends on the number."""
    least: int = 0
    """The smallest number for which all this holds."""
    place: Callable[[int, int], tuple[int, int, int]] | None = None
    """By thread and number, where the loop begins and ends in the code, and the operations of a period (0: there is
    none); without it the threads tell (``Thread.rounds``).
    """

    def uneven(self) -> dict[str, int | None]:
        """Those of the values that are not the same in rounds that are a period apart."""
        return {name: every for name, every in self.values.items() if every is None or self.period % every}

    def with_period(self, period: int) -> Rounds:
        """The same with a multiple of the period, or a part of it where all that grows does so evenly."""
        growing, written = (
            {name: by * period // self.period for name, by in some.items()} for some in (self.growing, self.written)
        )
        return replace(self, period=period, growing=growing, written=written)

    @property
    def ahead(self) -> int:
        """The rounds at the beginning of a loop that are like no others."""
        return max((cuts.ahead for cuts in self.loops.values()), default=0)

    def left_out(self, kept: int, every: int, least: int | None = None) -> int:
        """How many rounds can be left out behind the first ones, in multiples of a number, so that a period (or so many
        as ``least``) and the last ones follow, where all loops are as long as they are written.
        """
        ends = min(cuts.count - cuts.behind for cuts in self.loops.values() if cuts.count is not None)
        return max(ends - kept - (self.period if least is None else least), 0) // every * every


class Aperiodic(Exception):
    """What is not alike in any two rounds; ``span`` is where it stands, and ``turn`` the round, or the number, from
    which on it is alike, where that is known.
    """

    def __init__(self, what: str, span: Span | None = None, turn: int | None = None) -> None:
        where = f" (line {span.line})" if span is not None else ""
        super().__init__(f"{what}{where}")
        self.span = span
        self.turn = turn
