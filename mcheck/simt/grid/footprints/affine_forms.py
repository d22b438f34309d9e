"""Transfer functions of instructions on affine forms in the coordinates of the cluster
(``mcheck.simt.grid.footprints.space``).

The rules are those of values that grow with a number of iterations (``mcheck.simt.parametric.affine``), with the
symbols of the space in place of periods. Where a rule compares a value with a bound, and the answer differs within the
grid, the class of the executed cluster gets a condition. A comparison gives its predicate a condition instead, by lane:
it counts where something depends on the predicate.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import to_number, truncate, type_bits
from mcheck.isa.opcode import Opcode
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.grid.footprints.space import Space, trim_slopes
from mcheck.simt.parametric.affine import MAX_SLOPE, Numbers, Rule, Slopes, Value, rule_of

Conditions = NDArray[np.int32]
"""By lane, the number of a set of conditions (``Table``)."""
ALWAYS, NEVER = 0, -1
"""The number of the empty set of conditions, and that of an unknown condition."""

Inequality = tuple[tuple[int, ...], int]
"""``slopes * symbols <= bound``."""


@dataclass(slots=True)
class ConditionTable:
    """Sets of conditions, numbered."""

    space: Space
    sets: list[frozenset[Inequality]] = field(default_factory=lambda: [frozenset()])
    numbers: dict[frozenset[Inequality], int] = field(default_factory=lambda: {frozenset(): ALWAYS})
    unions: dict[tuple[int, int], int] = field(default_factory=dict)

    def number(self, parts: frozenset[Inequality]) -> int:
        """The number of a set, without the conditions that hold for the whole grid."""
        kept = frozenset(p for p in parts if not self.space.holds(*p))
        found = self.numbers.get(kept)
        if found is None:
            found = self.numbers[kept] = len(self.sets)
            self.sets.append(kept)
        return found

    def both(self, first: Conditions, second: Conditions) -> Conditions:
        """The conjunction of two conditions per lane."""
        if not second.any():
            return first
        if not first.any():
            return second
        pairs, back = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
        found = np.array([self._union(*map(int, pair)) for pair in pairs.T], np.int32)
        return found[back.reshape(-1)]

    def _union(self, a: int, b: int) -> int:
        if NEVER in (a, b):
            return NEVER
        key = (min(a, b), max(a, b))
        if key not in self.unions:
            self.unions[key] = self.number(self.sets[a] | self.sets[b])
        return self.unions[key]

    def require(self, conditions: Conditions, span: Span | None) -> bool:
        """Restrict the class to the clusters that satisfy these conditions; false where they are unknown."""
        for number in distinct(conditions).tolist():
            if number == NEVER:
                return False
            for slopes, bound in self.sets[number]:
                self.space.require(slopes, bound, span)
        return True


@dataclass(slots=True)
class Coordinates(Numbers):
    """The clusters of the class."""

    space: Space = field(kw_only=True)
    span: Span | None = None

    @property
    def divides(self) -> bool:
        return True

    def grows_at_most(self, room: NDArray[Any], slopes: Slopes) -> Mask:
        good = np.ones(len(room), np.bool_)
        moving = slopes.any(axis=0)
        if not moving.any():
            return good
        some, by = room[moving], slopes[:, moving]
        for these, column in _by_slopes(by):
            left = some[these]
            left = left[left >= 0]
            if len(left):
                self.space.require(column, int(left.min()), self.span)
        good[moving] = room[moving] >= 0
        return good

    def stays_between(self, value: NDArray[Any], slopes: Slopes, low: int, high: int) -> Mask:
        if not slopes.any():
            return np.ones(len(value), np.bool_)
        least, most = int(value.min()), int(value.max())
        if least < low or most > high or (slopes != slopes[:, :1]).any():
            return Numbers.stays_between(self, value, slopes, low, high)
        column = slopes[:, 0].tolist()
        self.space.require(column, high - most, self.span)
        self.space.require([-x for x in column], least - low, self.span)
        return np.ones(len(value), np.bool_)

    def without_still(self, slopes: Slopes) -> Slopes:
        out = slopes.copy()
        for these, column in _by_slopes(slopes):
            if any(column) and self.space.is_still(column):
                out[:, these] = 0
        return out

    def floor_slopes(self, value: Value, base: NDArray[Any], block: NDArray[Any]) -> tuple[Slopes, Mask]:
        whole = (value.slopes % block == 0).all(axis=0)
        slopes = np.where(whole, value.slopes // block, 0)
        good = whole.copy()
        rest = np.flatnonzero(~whole & ~value.bad)
        if not len(rest):
            return slopes, good
        inside = base.astype(np.int64)[rest] % block[rest]
        columns = np.vstack([block[rest], value.slopes[:, rest]])
        kinds, back = np.unique(columns, axis=1, return_inverse=True)
        for n in range(kinds.shape[1]):
            divisor, *by = map(int, kinds[:, n])
            some = np.flatnonzero(back.reshape(-1) == n)
            starts, which = np.unique(inside[some], return_inverse=True)
            for number, made in enumerate(self._quotients(starts.tolist(), by, divisor)):
                mine = rest[some[which == number]]
                slopes[:, mine], good[mine] = made[:, None], True
        return slopes, good

    def _quotients(self, starts: list[int], by: list[int], divisor: int) -> list[NDArray[np.int64]]:
        """The slopes of quotients that differ in what is divided in the executed cluster. Where they would be many
        symbols, the class has those clusters in which each is the same.
        """
        low, high = self.space.bound_form(by)
        same = np.zeros(len(by), np.int64)
        out = []
        for start in starts:
            made = same if start + low >= 0 and start + high < divisor else self._quotient(start, by, divisor)
            if made is None:
                self.space.require(by, divisor - 1 - start, self.span)
                self.space.require([-x for x in by], start, self.span)
            out.append(same if made is None else made)
        return out

    def _quotient(self, start: int, by: list[int], divisor: int) -> NDArray[np.int64] | None:
        """The slopes of one quotient: the whole part of its slopes, and a symbol for the remainder, unless that stays
        in one block.
        """
        whole: NDArray[np.int64] = np.array([x // divisor for x in by], np.int64)
        rest = [x % divisor for x in by]
        # A remainder above the half stands for a negative one: that keeps what is divided small.
        near = np.array([x > divisor // 2 for x in rest])
        whole, rest = whole + near, [x - divisor if up else x for x, up in zip(rest, near.tolist(), strict=True)]
        low, high = self.space.bound_form(rest)
        if start + low >= 0 and start + high < divisor:
            return whole
        symbol = self.space.quotient(start, rest, divisor)
        if symbol is None:
            return None
        whole[symbol] += 1
        return whole


def coordinate_rule(opcode: Opcode) -> Rule | None:
    """The rule of an instruction; ``None`` if it has none."""
    if opcode.name == "and" and type_bits(opcode.type) > 1:
        return _mask(opcode, rule_of(opcode))
    if opcode.name == "bfe" and opcode.type[0] == "u":
        return _bit_field_extract(opcode.type)
    if opcode.name == "bfi":
        return _bit_field_insert(type_bits(opcode.type))
    return rule_of(opcode)


def _bit_field_extract(kind: str) -> Rule:
    """``bfe``: a quotient by a power of two, modulo another power of two."""
    bits = type_bits(kind)

    def run(n: Numbers, s: list[Value]) -> Value:
        base, fits = n.in_range(s[0], kind)
        at, length = (np.minimum(truncate(x.base, 8), np.uint64(bits)).astype(np.int64) for x in s[1:3])
        end = np.minimum(at + length, bits)
        lower, known = n.floor_slopes(s[0], base, np.int64(1) << np.minimum(at, 62))
        upper, also = n.floor_slopes(s[0], base, np.int64(1) << np.minimum(end, 62))
        bad = s[0].bad | ~s[1].invariant | ~s[2].invariant | ~fits | ~known | ~also | (end > 62)
        return Value(s[0].base, lower - (upper << (end - np.minimum(at, end))), bad)

    return run


def _bit_field_insert(bits: int) -> Rule:
    """``bfi``: a number that fits its field, or whose field extends to the end, inserted into a constant one."""

    def run(n: Numbers, s: list[Value]) -> Value:
        given, into, position, length = s
        at, size = (np.minimum(truncate(x.base, 8), np.uint64(64)).astype(np.int64) for x in (position, length))
        base = to_number(given.base, f"u{bits}")
        fits = at + size >= bits
        for many in distinct(size[~fits]).tolist():
            some = ~fits & (size == many)
            fits[some] = n.stays_between(base[some], given.slopes[:, some], 0, (1 << many) - 1)
        fits &= (at < min(bits, 40)) & position.invariant & length.invariant & into.invariant
        slopes = given.slopes << np.minimum(at, 40)
        steep = (np.abs(given.slopes) >= 1 << 20).any(axis=0)
        if bits < 64:
            slopes = (slopes + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return Value(given.base, slopes, given.bad | ~fits | steep)

    return run


def _mask(opcode: Opcode, otherwise: Rule | None) -> Rule:
    """``and`` with a run of ones, as masks of remainders, of blocks and of single bits are: what is left of a number
    below the end of the run, without the rest below its beginning.
    """
    bits = type_bits(opcode.type)

    def run(n: Numbers, s: list[Value]) -> Value:
        assert otherwise is not None
        one, other = (s[1], s[0]) if not s[1].slopes.any() else (s[0], s[1])
        plain = otherwise(n, s)
        mask = distinct(truncate(one.base, bits)).tolist()
        if not plain.bad.any() or not one.invariant.all() or len(mask) != 1:
            return plain
        low, high = _run_of_ones(mask[0])
        if mask[0] != high - low or low >= MAX_BLOCK or (high >= MAX_BLOCK and high >> bits == 0):
            return plain
        base, fits = n.in_range(other, f"u{bits}")
        inside, known = _multiples_of(n, other, base, low)
        if high >> bits == 0:
            beyond, also = _multiples_of(n, other, base, high)
            inside, known = inside - beyond, known & also
        steep = (np.abs(inside) > MAX_SLOPE).any(axis=0)
        return Value(other.base, inside, other.bad | ~fits | ~known | steep)

    return run


MAX_BLOCK = 1 << 62
"""The blocks that are counted are smaller."""


def _run_of_ones(mask: int) -> tuple[int, int]:
    """The lowest bit of a mask, and the one above its highest."""
    return mask & -mask, 1 << mask.bit_length()


def _multiples_of(n: Numbers, value: Value, base: NDArray[Any], block: int) -> tuple[Slopes, Mask]:
    """The slopes of a number rounded down to multiples of a block, and the lanes where they are known."""
    quotient, known = n.floor_slopes(value, base.astype(np.int64), np.full(len(base), block, np.int64))
    return quotient * block, known


def comparison_condition(table: ConditionTable, n: Coordinates, test: str, kind: str, a: Value, b: Value) -> Conditions:
    """By lane, the condition under which a comparison of integers keeps its result."""
    if test in ("lo", "ls", "hi", "hs") or kind[0] == "b":
        kind = f"u{type_bits(kind)}"
    out = np.where(a.bad | b.bad, NEVER, ALWAYS).astype(np.int32)
    slopes = a.slopes - b.slopes
    moving = np.flatnonzero((a.slopes.any(axis=0) | b.slopes.any(axis=0)) & (out == ALWAYS))
    if not len(moving):
        return out
    x, fits = n.in_range(Value(a.base[moving], a.slopes[:, moving], a.bad[moving]), kind)
    y, also = n.in_range(Value(b.base[moving], b.slopes[:, moving], b.bad[moving]), kind)
    if type_bits(kind) < 64:
        apart = x.astype(np.int64) - y.astype(np.int64)
    else:
        exact = np.array([int(p) - int(q) for p, q in zip(x, y, strict=True)], object)
        apart = exact.clip(-(1 << 62), 1 << 62).astype(np.int64)
    found = np.zeros(len(moving), np.int32)
    for these, column in _by_slopes(slopes[:, moving]):
        values, back = np.unique(apart[these], return_inverse=True)
        numbers = np.array([table.number(_invariant_if(test, value, column)) for value in values.tolist()], np.int32)
        found[these] = numbers[back]
    out[moving] = np.where(fits & also, found, NEVER)
    return out


def _by_slopes(slopes: Slopes) -> list[tuple[NDArray[np.int64], list[int]]]:
    """Group lanes by slopes."""
    if not (slopes != slopes[:, :1]).any():
        return [(np.arange(slopes.shape[1]), slopes[:, 0].tolist())]
    kinds, back = np.unique(slopes, axis=1, return_inverse=True)
    return [(np.flatnonzero(back.reshape(-1) == n), kinds[:, n].tolist()) for n in range(kinds.shape[1])]


def _invariant_if(test: str, apart: int, slopes: list[int]) -> frozenset[Inequality]:
    """The condition under which ``apart + slopes * symbols`` compares with 0 as ``apart`` does; for a nonzero value,
    that it does not reach 0.
    """
    up, down = trim_slopes(slopes), trim_slopes([-s for s in slopes])
    if not up:
        return frozenset()
    over = {"lt": 0, "lo": 0, "ge": 0, "hs": 0, "le": 1, "ls": 1, "gt": 1, "hi": 1}
    if test in over:
        bound = over[test]
        return frozenset({(up, bound - 1 - apart)} if apart < bound else {(down, apart - bound)})
    if apart < 0:
        return frozenset({(up, -1 - apart)})
    if apart > 0:
        return frozenset({(down, apart - 1)})
    return frozenset({(up, 0), (down, 0)})
