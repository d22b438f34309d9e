"""What a program with a constant that is any number has in common with itself at other numbers (``Program.rounds``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.errors import Span


@dataclass(frozen=True, slots=True)
class Rounds:
    """The loops over a constant that is any number, N for short.

    Code is alike in rounds that are ``period`` apart, and so is what comes behind the loops for numbers that are: equal
    but for addresses in the global objects that ``growing`` names, which go on by so many bytes in a period, and, where
    some are ``stored``, for values that plain stores write.
    ``bodies`` are, by role, where the statements of its loop stand; roles without such a loop have none.
    """

    period: int
    growing: dict[str, int]
    bodies: dict[str, frozenset[Span]]
    stored: bool = False
    written: dict[str, int] = field(default_factory=dict)
    """What of ``growing`` are addresses to which something is written."""
    place: Callable[[int, int], tuple[int, int, int]] | None = None
    """By thread and number, where the loop begins and ends in the code, and the operations of a period (0: there is
    none); without it ``bodies`` tell.
    """


class Aperiodic(Exception):
    """What is not alike in any two rounds; ``span`` is where it stands."""

    def __init__(self, what: str, span: Span | None = None) -> None:
        where = f" (line {span.line})" if span is not None else ""
        super().__init__(f"{what}{where}")
        self.span = span
