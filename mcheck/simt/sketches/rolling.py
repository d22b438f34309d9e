"""Loop rerolling: recovers loops from straight-line code."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.simt.sketches.formulas import Number, fit_formula

LONGEST = 400
"""Maximum lines of a loop's body, before its inner loops have been found."""


@dataclass(frozen=True, slots=True)
class Line:
    """A statement: its text with placeholders for numbers (``mcheck.simt.sketches.spelling``), and its location."""

    text: tuple[str, ...]
    numbers: tuple[Number, ...]
    span: Span | None

    @property
    def shape(self) -> object:
        """The part in common with lines that differ only in their numbers."""
        return self.text, None if self.span is None else (self.span.line, self.span.column)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop ``for var in 0..count``."""

    var: str
    count: int
    body: tuple[Node, ...]

    @property
    def shape(self) -> object:
        """Likewise."""
        return self.var, self.count, tuple(node.shape for node in self.body)


@dataclass(frozen=True, slots=True)
class When:
    """Code of these lanes only."""

    lanes: tuple[int, ...]
    body: tuple[Node, ...]

    @property
    def shape(self) -> object:
        """Likewise."""
        return self.lanes, tuple(node.shape for node in self.body)


Node = Line | Loop | When
VARIABLES = "kijmn"


def merge_nodes(nodes: Sequence[Node], var: str, places: Sequence[int]) -> Node | None:
    """Merge nodes of one shape into one whose numbers are formulas in ``var``."""
    first = nodes[0]
    if isinstance(first, Line):
        lines = [n for n in nodes if isinstance(n, Line)]
        numbers = [fit_formula(column, var, places) for column in zip(*(n.numbers for n in lines), strict=True)]
        if any(n is None for n in numbers):
            return None
        return Line(first.text, tuple(n for n in numbers if n is not None), first.span)
    body = merge_codes([n.body for n in nodes if not isinstance(n, Line)], var, places)
    return None if body is None else replace(first, body=body)


def merge_codes(codes: Sequence[Sequence[Node]], var: str, places: Sequence[int]) -> tuple[Node, ...] | None:
    """Merge codes of one shape."""
    out: list[Node] = []
    for nodes in zip(*codes, strict=True):
        one = merge_nodes(nodes, var, places)
        if one is None:
            return None
        out.append(one)
    return tuple(out)


def roll_loops(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The code with loops, innermost ones found first."""
    code = list(nodes)
    for var in VARIABLES:
        before = len(code)
        code = _roll(code, var)
        if len(code) == before:
            break
    return tuple(code)


def _roll(code: list[Node], var: str) -> list[Node]:
    numbers: dict[object, int] = {}
    shapes = [numbers.setdefault(node.shape, len(numbers)) for node in code]
    taken = [False] * len(code)
    found: dict[int, tuple[int, Loop]] = {}
    for period in range(1, min(len(code) // 2, LONGEST) + 1):
        at = 0
        while at + 2 * period <= len(code):
            end = at
            while end + period < len(code) and shapes[end] == shapes[end + period] and not taken[end + period]:
                end += 1
            rounds = (end - at) // period + 1
            if taken[at] or rounds < (3 if period == 1 else 2):
                at = max(end, at) + 1 if end > at and rounds < 2 else at + 1
                continue
            step = _best_loop(code, at, period, rounds, var)
            if step is None:
                at += 1
                continue
            start, length, loop = step
            found[start] = length, loop
            taken[start : start + length] = [True] * length
            at = start + length
    out: list[Node] = []
    at = 0
    while at < len(code):
        here = found.get(at)
        if here is None:
            out.append(code[at])
            at += 1
        else:
            out.append(here[1])
            at += here[0]
    return out


def _best_loop(code: list[Node], at: int, period: int, rounds: int, var: str) -> tuple[int, int, Loop] | None:
    """A loop of these iterations, or of all but the first or the last; its start and its number of nodes."""
    for first, count in ((0, rounds), (1, rounds - 1), (0, rounds - 1)):
        if count < 2 or (count == 2 and (period == 1 or rounds > 2)):
            continue
        start = at + first * period
        codes = [code[start + k * period : start + (k + 1) * period] for k in range(count)]
        body = merge_codes(codes, var, range(count))
        if body is not None:
            return start, count * period, Loop(var, count, body)
    return None
