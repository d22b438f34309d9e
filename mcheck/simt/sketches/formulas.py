"""Formulas of numbers that follow a pattern: fitted to columns of values, written as expressions of the block form."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mcheck.base.records import dataclass

MOST_STAGES = 64
BITS = 5


@dataclass(frozen=True, slots=True)
class Formula:
    """A number that depends on ``var``, by ``kind`` and its parameters.

    ``line``: a + b v; ``ring``: a + b ((v + o) % s); ``turn``: a + b ((v + o) / s % 2); ``walk``: a + b (v % s) + c (v
    / s); any other kind is an expression in the lane, to which a is added.
    """

    kind: str
    var: str
    parameters: tuple[Number, ...]


Number = int | Formula


def fit_formula(values: Sequence[Number], var: str, places: Sequence[int]) -> Number | None:
    """Fit a formula in ``var`` that is ``values[k]`` where ``var`` is ``places[k]``; ``None`` if there is none."""
    first = values[0]
    if all(v == first for v in values):
        return first
    if all(isinstance(v, int) for v in values):
        return _fit_integers([v for v in values if isinstance(v, int)], var, places)
    if not all(isinstance(v, Formula) for v in values):
        return None
    formulas = [v for v in values if isinstance(v, Formula)]
    one = formulas[0]
    if any((f.kind, f.var) != (one.kind, one.var) for f in formulas):
        return None
    columns = zip(*(f.parameters for f in formulas), strict=True)
    inner = [fit_formula(column, var, places) for column in columns]
    if any(p is None for p in inner):
        return None
    return Formula(one.kind, one.var, tuple(p for p in inner if p is not None))


def _fit_integers(values: list[int], var: str, places: Sequence[int]) -> Number | None:
    step, rest = divmod(values[1] - values[0], places[1] - places[0])
    start = values[0] - step * places[0]
    if not rest and all(v == start + step * x for v, x in zip(values, places, strict=True)):
        return Formula("line", var, (start, step))
    if list(places) != list(range(len(places))):
        return None
    return _fit_ring(values, var) or _fit_turn(values, var) or _fit_walk(values, var)


def _fit_ring(values: list[int], var: str) -> Number | None:
    count = len(values)
    for stages in range(2, min(count, MOST_STAGES)):
        if any(values[k] != values[k - stages] for k in range(stages, count)):
            continue
        low = min(values[:stages])
        offset = -values.index(low) % stages
        turned = [values[(k - offset) % stages] for k in range(stages)]
        steps = {b - a for a, b in pairwise(turned)}
        if len(steps) == 1:
            return Formula("ring", var, (low, steps.pop(), offset, stages))
    return None


def _fit_turn(values: list[int], var: str) -> Number | None:
    kinds = sorted(set(values))
    if len(kinds) != 2:
        return None
    low, high = kinds
    changes = [k for k in range(1, len(values)) if values[k] != values[k - 1]]
    lengths = [b - a for a, b in pairwise(changes)]
    longest = max(changes[0], len(values) - changes[-1], *lengths, 1)
    stages = lengths[0] if lengths else changes[0] if changes[0] >= len(values) - changes[-1] else longest
    if any(n != stages for n in lengths) or changes[0] > stages or len(values) - changes[-1] > stages:
        return None
    offset = (stages - changes[0]) + (stages if values[0] == high else 0)
    return Formula("turn", var, (low, high - low, offset % (2 * stages), stages))


def _fit_walk(values: list[int], var: str) -> Number | None:
    count = len(values)
    for stages in range(2, min(count // 2, MOST_STAGES) + 1):
        start, inner, outer = values[0], values[1] - values[0], values[stages] - values[0]
        if all(v == start + inner * (k % stages) + outer * (k // stages) for k, v in enumerate(values)):
            return Formula("walk", var, (start, inner, outer, stages))
    return None


# --- lanes ----------------------------------------------------------------------------------------------------


def fit_lanes(values: Sequence[int], lanes: Sequence[int]) -> Number | None:
    """Fit a formula in the lane: a sum, or an exclusive or, of its bits times numbers."""
    if all(v == values[0] for v in values):
        return values[0]
    by_lane = dict(zip(lanes, values, strict=True))
    return _fit_bits(by_lane, exclusive=False) or _fit_bits(by_lane, exclusive=True)


def _fit_bits(by_lane: dict[int, int], *, exclusive: bool) -> Number | None:
    weights: list[int] = []
    for bit in range(BITS):
        pair = next(((k, k ^ 1 << bit) for k in by_lane if not k >> bit & 1 and k ^ 1 << bit in by_lane), None)
        if pair is None:
            weights.append(0)
            continue
        low, high = by_lane[pair[0]], by_lane[pair[1]]
        weights.append(low ^ high if exclusive else high - low)

    def made(lane: int) -> int:
        out = 0
        for bit, weight in enumerate(weights):
            if lane >> bit & 1:
                out = out ^ weight if exclusive else out + weight
        return out

    first = next(iter(by_lane))
    if not exclusive:
        start = by_lane[first] - made(first)
        if any(v != start + made(k) for k, v in by_lane.items()):
            return None
        return Formula(_join_bits(weights, " + "), "lane", (start,))
    start = by_lane[first] ^ made(first)
    if any(v != start ^ made(k) for k, v in by_lane.items()):
        return None
    width = max(weights).bit_length()
    low = start & (1 << width) - 1
    text = _join_bits(weights, " ^ ")
    return Formula(f"({low} ^ {text})" if low else f"({text})", "lane", (start - low,))


def _join_bits(weights: list[int], sign: str) -> str:
    """Join bits whose weights double into one term."""
    parts: list[str] = []
    bit = 0
    while bit < BITS:
        weight, last = weights[bit], bit
        if not weight:
            bit += 1
            continue
        while last + 1 < BITS and weights[last + 1] == 2 * weights[last]:
            last += 1
        parts.append(_part(bit, last, weight))
        bit = last + 1
    return sign.join(parts)


def _part(bit: int, last: int, weight: int) -> str:
    lane = "%laneid" if last == BITS - 1 else f"%laneid % {1 << last + 1}"
    if bit:
        lane = f"{lane} / {1 << bit}"
    if weight == 1:
        return lane if lane == "%laneid" else f"({lane})"
    return f"{lane} * {weight}" if lane == "%laneid" else f"({lane}) * {weight}"


# --- text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Writer:
    """``stages`` is the number of stages of the functions ``stage`` and ``parity``, ``None`` without them."""

    stages: int | None = None

    def text(self, number: Number, *, inner: bool = False) -> str:
        """An expression; ``inner``: it stands beside operators that bind as tightly as a product."""
        if isinstance(number, int):
            return str(number) if number >= 0 or not inner else f"({number})"
        terms = self.terms(number)
        text = " + ".join(terms).replace("+ -", "- ")
        return f"({text})" if inner and (len(terms) > 1 or not _closed(text)) else text

    def terms(self, number: Number) -> list[str]:
        """The terms of a sum."""
        if isinstance(number, int):
            return [str(number)] if number else []
        start, *rest = number.parameters
        out = self.terms(start)
        match number.kind:
            case "line":
                out.append(self._times(number.var, rest[0]))
            case "ring":
                out.append(self._times(self._stage(number.var, rest[1], rest[2]), rest[0]))
            case "turn":
                out.append(self._times(self._parity(number.var, rest[1], rest[2]), rest[0]))
            case "walk":
                out.append(self._times(self._stage(number.var, 0, rest[2]), rest[0]))
                out.append(self._times(f"({number.var} / {self.text(rest[2], inner=True)})", rest[1]))
            case _:
                out.append(number.kind)
        return out or ["0"]

    def _stage(self, var: str, offset: Number, stages: Number) -> str:
        at = self._plus(var, offset)
        return f"stage({at})" if stages == self.stages else f"({_inner(at)} % {self.text(stages, inner=True)})"

    def _parity(self, var: str, offset: Number, stages: Number) -> str:
        at = self._plus(var, offset)
        if stages == 1:
            return f"({_inner(at)} % 2)"
        return f"parity({at})" if stages == self.stages else f"({_inner(at)} / {self.text(stages, inner=True)} % 2)"

    def _plus(self, var: str, offset: Number) -> str:
        return var if offset == 0 else f"{var} + {self.text(offset, inner=True)}"

    def _times(self, what: str, factor: Number) -> str:
        if factor == 1:
            return what
        if factor == -1:
            return f"-{what}"
        return f"{what} * {self.text(factor, inner=True)}"


def _inner(text: str) -> str:
    return f"({text})" if " " in text else text


def _closed(text: str) -> bool:
    return text.isalnum() or (text.endswith(")") and (text.startswith(("stage(", "parity(")) or text[0] == "("))


def ring_stages(number: Number) -> list[int]:
    """The numbers of stages of the ring formulas in a number."""
    if isinstance(number, int):
        return []
    out = [n for p in number.parameters for n in ring_stages(p)]
    last = number.parameters[-1]
    if number.kind in ("ring", "turn") and isinstance(last, int) and last > 1:
        out.append(last)
    return out
