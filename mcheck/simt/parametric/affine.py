"""Registers as affine functions of an unbounded parameter: transfer functions of instructions on values that grow with
it.

The parameter is ``start + (t + w) * step + v`` with t and w from 0 to ``most`` together and v from 0 to ``spare``. A
value is its base for t = w = v = 0, which the execution knows, and three slopes: its increments with t, w and v, modulo
its width. t counts completed periods of a loop, w those still to come; v ranges over numbers that make no difference. A
value that is not known to grow so is *bad*; that is harmless until something depends on it.

Where an instruction compares a number, the result must be the same for all numbers: a comparison may exclude numbers at
the far end (``most``, ``spare``), and where too few would be left its result is bad. So the findings hold for every
number that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word, is_floating, is_packed, low_mask, to_number, truncate, type_bits
from mcheck.isa.opcode import Opcode
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import Mask

Slopes = NDArray[np.int64]
"""By t, w and v, over the lanes."""
Rule = Callable[["Numbers", "list[Value]"], "Value"]

MAX_SLOPE = 1 << 40
"""Maximum slope that is followed."""


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: the values of the current lanes, their slopes, and which are bad."""

    base: Word
    slopes: Slopes
    bad: Mask

    @property
    def invariant(self) -> Mask:
        """The lanes whose value is the same for all numbers."""
        return ~self.bad & ~self.slopes.any(axis=0)

    def of_lanes(self, lanes: Mask) -> Value:
        """The same of some of the lanes."""
        return Value(self.base[lanes], self.slopes[:, lanes], self.bad[lanes])


@dataclass(slots=True)
class Numbers:
    """The numbers that are left: ``most`` periods, of which there must be at least ``least``, and ``spare``."""

    most: int
    least: int
    spare: int

    @property
    def divides(self) -> bool:
        """Whether quotients that do not grow evenly are followed."""
        return False

    def grows_at_most(self, room: NDArray[Any], slopes: Slopes) -> Mask:
        """The lanes in which a value with these slopes grows by no more than ``room`` (0 or more); numbers are excluded
        where too large ones would exceed it.
        """
        good = np.ones(len(room), np.bool_)
        moving = slopes.any(axis=0)
        if not moving.any():
            return good
        columns = np.vstack([room[moving].astype(np.int64), slopes[:, moving]])
        kinds, back = np.unique(columns, axis=1, return_inverse=True)
        fits = np.array([self._fits(*map(int, kinds[:, k])) for k in range(kinds.shape[1])], np.bool_)
        good[moving] = fits[back.reshape(-1)]
        return good

    def _fits(self, room: int, t: int, w: int, v: int) -> bool:
        if room < 0:
            return False
        up = max(t, w, 0)
        if up:
            most = (room - max(v, 0) * self.spare) // up
            if most < self.least:
                return False
            self.most = min(self.most, most)
        elif v > 0:
            self.spare = min(self.spare, room // v)
        return True

    def stays_between(self, value: NDArray[Any], slopes: Slopes, low: int, high: int) -> Mask:
        """The lanes in which a value stays from ``low`` to ``high``."""
        top = np.array([high - int(x) for x in value], object).clip(-1, (1 << 62))
        bottom = np.array([int(x) - low for x in value], object).clip(-1, (1 << 62))
        return self.grows_at_most(top, slopes) & self.grows_at_most(bottom, -slopes)

    def in_range(self, value: Value, kind: str) -> tuple[NDArray[Any], Mask]:
        """The values as numbers of a type, and the lanes in which they stay in its range."""
        bits = type_bits(kind)
        base: NDArray[Any] = to_number(value.base, kind)
        if kind[0] == "s":
            low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        else:
            low, high = 0, (1 << bits) - 1
        return base, self.stays_between(base, value.slopes, low, high)

    def without_still(self, slopes: Slopes) -> Slopes:
        """The slopes, without those of values that the exclusions so far leave one number for."""
        return slopes

    def floor_slopes(self, value: Value, base: NDArray[Any], block: NDArray[Any]) -> tuple[Slopes, Mask]:
        """The slopes of quotients by ``block``, rounded down, and the lanes where they are known: the slopes are
        multiples of it, or the values stay in one block. ``base`` is natural, or the rounding of an arithmetic shift.
        """
        whole = value.slopes % block == 0
        slopes = np.where(whole, value.slopes // block, 0)
        rest = np.where(whole, 0, value.slopes)
        inside = np.array([int(x) % int(y) for x, y in zip(base, block, strict=True)], object)
        room = np.array([int(y) for y in block], object) - 1 - inside
        return slopes, self.grows_at_most(room, rest) & self.grows_at_most(inside, -rest)


def rule_of(opcode: Opcode) -> Rule | None:
    """The transfer function of an integer instruction on growing values; ``None`` if it has none."""
    name, kind = opcode.name, opcode.type
    if opcode.has("sat") or opcode.has("cc") or is_packed(kind) or is_floating(kind):
        return None
    match name:
        case "mov" | "cvta":
            return lambda _, s: s[0]
        case "add" | "sub" | "neg" | "not":
            return _RULES[name](type_bits(kind))
        case "mul" | "mad" if opcode.mode in ("lo", "wide"):
            return _product(kind, wide=opcode.mode == "wide")
        case "mul" if opcode.mode == "hi" and type_bits(kind) in (32, 64):
            return _upper_half(kind)
        case "shl":
            return _shift_left(type_bits(kind))
        case "shr":
            return _shift_right(kind)
        case "and" | "or" | "xor" if type_bits(kind) > 1:
            return _bitwise(name, type_bits(kind))
        case "min" | "max":
            return _extreme(name, kind)
        case "setp" if len(opcode.parts) == 3:
            return _comparison(opcode.mode, kind)
        case "div" | "rem":
            return _division(name, kind)
        case "cvt":
            return _conversion(opcode.parts[-2], kind)
        case "bfe" if kind[0] in "ub":
            return _bit_field()
    return None


def _result(like: Value, slopes: Slopes, bad: Mask, bits: int = 64) -> Value:
    if bits < 64:
        half, whole = 1 << bits - 1, 1 << bits
        slopes = (slopes + half) % whole - half
    return Value(like.base, slopes, bad | (np.abs(slopes) > MAX_SLOPE).any(axis=0))


def _sum(bits: int) -> Rule:
    return lambda _, s: _result(s[0], s[0].slopes + s[1].slopes, s[0].bad | s[1].bad, bits)


def _difference(bits: int) -> Rule:
    return lambda _, s: _result(s[0], s[0].slopes - s[1].slopes, s[0].bad | s[1].bad, bits)


def _negative(bits: int) -> Rule:
    return lambda _, s: _result(s[0], -s[0].slopes, s[0].bad, bits)


_RULES = {"add": _sum, "sub": _difference, "neg": _negative, "not": _negative}


def _multiply(value: Value, by: Value, factor: NDArray[Any], bits: int) -> Value:
    """A value multiplied by one that is the same for all numbers."""
    steep = (np.abs(factor.astype(object)) > MAX_SLOPE).astype(np.bool_)
    factor = np.where(steep, 0, factor).astype(np.int64)
    far = np.abs(value.slopes).max(axis=0).astype(object) * np.abs(factor).astype(object) > MAX_SLOPE
    bad = value.bad | ~by.invariant | steep | far.astype(np.bool_)
    return _result(value, np.where(bad, 0, value.slopes * factor), bad, bits)


def _invariant_first(s: list[Value]) -> tuple[Value, Value]:
    """The operands of a commutative operation: one that does not grow first, if there is one."""
    return (s[1], s[0]) if not s[1].slopes.any() else (s[0], s[1])


def _product(kind: str, *, wide: bool) -> Rule:
    bits = type_bits(kind)
    sign = kind if wide else "s" + kind[1:]

    def run(n: Numbers, s: list[Value]) -> Value:
        one, other = _invariant_first(s)
        made = _multiply(other, one, to_number(one.base, sign), 64 if wide else bits)
        slopes, bad = made.slopes, made.bad
        if wide:
            bad = bad | ~n.in_range(other, kind)[1]
        if len(s) > 2:
            slopes, bad = slopes + s[2].slopes, bad | s[2].bad
        return _result(made, slopes, bad, 2 * bits if wide else bits)

    return run


NEARLY = 3
"""The remainder up to which a factor counts as a fraction with a smaller divisor, too."""


def _fraction(factor: int, bits: int) -> tuple[int, int, int] | None:
    """A factor ``m`` of which the upper half of a product is kept, as a fraction ``a / d`` with ``m d = a 2^bits + e``,
    rounded up or down; ``None`` if it is none.
    """
    near = Fraction(factor, 1 << bits).limit_denominator(1 << (bits // 4))
    a, d = near.numerator, near.denominator
    e = factor * d - (a << bits)
    return (a, d, e) if abs(e) <= max(NEARLY, d) else None


def _upper_half(kind: str) -> Rule:
    """The upper half of a product with a constant, as compilers and CUTLASS divide by one. With ``m d = a 2^n + e`` the
    upper half of x m, for a natural x, is x a / d rounded down, as long as x e < 2^n: the rounding is by at most
    (d - 1) / d, and e adds less than 1 / d. If m is rounded down, e is negative and takes off less than 1 / d, so the
    upper half is (x a - 1) / d rounded down, for a positive x.
    """
    bits = type_bits(kind)

    def run(n: Numbers, s: list[Value]) -> Value:
        one, other = _invariant_first(s)
        base, fits = n.in_range(other, kind)
        slopes, bad = np.zeros_like(other.slopes), other.bad | ~one.invariant | ~fits
        for m in distinct(truncate(one.base, bits)).tolist():
            some = np.flatnonzero(~bad & (truncate(one.base, bits) == m))
            bad[some] = True
            found = _fraction(m, bits)
            if found is None:
                continue
            a, d, e = found
            if not (n.divides or ((other.slopes[:, some] * a) % d == 0).all()):
                continue
            down = int(e < 0)
            most = min(((1 << bits) - 1) // max(abs(e), 1), (1 << 62) // max(a, 1))
            bad[some] = ~n.stays_between(base[some], other.slopes[:, some], down, most)
            times = Value(other.base[some], other.slopes[:, some] * a, other.bad[some])
            whole = np.where(bad[some], 0, base[some]).astype(np.int64) * a - down
            quotient, known = n.floor_slopes(times, whole, np.full(len(some), d, np.int64))
            less = other.slopes[:, some] if kind[0] == "s" and m >> bits - 1 else 0  # as a signed number m is m - 2^n
            slopes[:, some], bad[some] = quotient - less, bad[some] | ~known
        return _result(other, slopes, bad, bits)

    return run


def _shift_left(bits: int) -> Rule:
    def run(_: Numbers, s: list[Value]) -> Value:
        by = truncate(s[1].base, 32)
        factor = np.where(by >= min(bits, 40), 0, np.uint64(1) << np.minimum(by, np.uint64(39))).astype(np.int64)
        made = _multiply(s[0], s[1], factor, bits)
        return Value(made.base, made.slopes, made.bad | (by >= 40))

    return run


def _shift_right(kind: str) -> Rule:
    bits = type_bits(kind)

    def run(n: Numbers, s: list[Value]) -> Value:
        base, fits = n.in_range(s[0], kind if kind[0] == "s" else f"u{bits}")
        by = np.minimum(truncate(s[1].base, 32), np.uint64(bits - 1 if kind[0] == "s" else min(bits, 62)))
        slopes, known = n.floor_slopes(s[0], base, np.int64(1) << np.minimum(by, np.uint64(62)).astype(np.int64))
        return _result(s[0], slopes, s[0].bad | ~s[1].invariant | ~fits | ~known, bits)

    return run


def _division(name: str, kind: str) -> Rule:
    def run(n: Numbers, s: list[Value]) -> Value:
        base, fits = n.in_range(s[0], kind)
        by = to_number(s[1].base, kind)
        natural = n.stays_between(base, s[0].slopes, 0, 1 << 62) & (by > 0) & (by < MAX_SLOPE)
        block = np.where(natural, by, 1).astype(np.int64)
        slopes, known = n.floor_slopes(s[0], np.where(natural, base, 0).astype(np.int64), block)
        if name == "rem":
            slopes = s[0].slopes - slopes * block
        return _result(s[0], slopes, s[0].bad | ~s[1].invariant | ~fits | ~natural | ~known, type_bits(kind))

    return run


def _multiples(slopes: Slopes, of: NDArray[Any]) -> Mask:
    return np.asarray((slopes % of == 0).all(axis=0))


def _above(value: Word) -> NDArray[np.int64]:
    """The least power of two above each value; 2^62 for large ones."""
    return np.array([1 << min(int(x).bit_length(), 62) for x in value], np.int64)


def _bitwise(name: str, bits: int) -> Rule:
    """With a constant: low bits that no slope reaches, or high ones that a mask keeps."""

    def run(_: Numbers, s: list[Value]) -> Value:
        one, other = _invariant_first(s)
        constant = truncate(one.base, bits)
        under = _multiples(other.slopes, _above(constant))
        slopes = other.slopes
        if name == "and":
            gone = truncate(~constant, bits)
            slopes = np.where(under, 0, slopes)
            under = under | ((gone & (gone + np.uint64(1))) == 0) & _multiples(other.slopes, _above(gone))
        return _result(other, slopes, other.bad | ~one.invariant | ~under, bits)

    return run


def _bit_field() -> Rule:
    def run(_: Numbers, s: list[Value]) -> Value:
        top = truncate(s[1].base, 8) + truncate(s[2].base, 8)
        under = _multiples(s[0].slopes, np.int64(1) << np.minimum(top, np.uint64(62)).astype(np.int64))
        bad = s[0].bad | ~s[1].invariant | ~s[2].invariant | ~under | (top > 62)
        return Value(s[0].base, np.zeros_like(s[0].slopes), bad)

    return run


def _invariant_comparison(n: Numbers, a: Value, b: Value, kind: str, test: str) -> Mask:
    """The lanes in which a comparison has one result for all numbers."""
    x, fits = n.in_range(a, kind)
    y, also = n.in_range(b, kind)
    apart = np.array([int(p) - int(q) for p, q in zip(x, y, strict=True)], object).clip(-(1 << 62), 1 << 62)
    slopes = a.slopes - b.slopes
    good = fits & also & ~a.bad & ~b.bad
    moving = slopes.any(axis=0) & good
    if not moving.any():
        return good
    d, s = apart[moving], slopes[:, moving]
    over = {"lt": 0, "lo": 0, "ge": 0, "hs": 0, "le": 1, "ls": 1, "gt": 1, "hi": 1}
    if test in over:  # d < bound, or not
        bound = over[test]
        less = (d < bound).astype(np.bool_)
        kept = np.ones(len(d), np.bool_)
        kept[less] = n.grows_at_most(bound - 1 - d[less], s[:, less])
        kept[~less] = n.grows_at_most(d[~less] - bound, -s[:, ~less])
    else:
        kept = np.zeros(len(d), np.bool_)
        for some, room, way in (((d < 0), -1 - d, 1), ((d > 0), d - 1, -1)):
            part = some.astype(np.bool_)
            kept[part] = n.grows_at_most(room[part], way * s[:, part])
        same = (d == 0).astype(np.bool_)
        none = np.zeros(int(same.sum()), object)
        kept[same] = n.grows_at_most(none, s[:, same]) & n.grows_at_most(none, -s[:, same])
    good[moving] = kept
    return good


def _comparison(test: str, kind: str) -> Rule | None:
    if test not in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"):
        return None
    if test in ("lo", "ls", "hi", "hs") or kind[0] == "b":
        kind = f"u{type_bits(kind)}"

    def run(n: Numbers, s: list[Value]) -> Value:
        return Value(s[0].base, np.zeros_like(s[0].slopes), ~_invariant_comparison(n, s[0], s[1], kind, test))

    return run


def _extreme(name: str, kind: str) -> Rule:
    """``min`` and ``max``: one of both, as long as the other one is not beyond it. Of two equal ones it is the one that
    does not grow.
    """

    def run(n: Numbers, s: list[Value]) -> Value:
        a, b = s[0], s[1]
        x, y = to_number(a.base, kind), to_number(b.base, kind)
        first = (x < y if name == "min" else x > y) | ((x == y) & b.slopes.any(axis=0))
        known = np.zeros(len(x), np.bool_)
        for chosen, test in ((first, "le" if name == "min" else "ge"), (~first, "ge" if name == "min" else "le")):
            if chosen.any():
                known[chosen] = _invariant_comparison(n, a.of_lanes(chosen), b.of_lanes(chosen), kind, test)
        slopes = n.without_still(np.where(first, a.slopes, b.slopes))
        return _result(a, slopes, ~known, type_bits(kind))

    return run


def _conversion(to: str, source: str) -> Rule | None:
    if is_floating(to):
        return None

    def run(n: Numbers, s: list[Value]) -> Value:
        bad = s[0].bad
        if type_bits(to) > type_bits(source):
            bad = bad | ~n.in_range(s[0], source)[1]
        elif type_bits(to) < min(type_bits(source), 32):  # the register may be wider than the result
            bad = bad | ~n.in_range(s[0], to)[1]
        return _result(s[0], s[0].slopes, bad, min(type_bits(to), 64))

    return run


def select_rule(first: Value, second: Value, by: Value) -> Value:
    """The transfer function of ``selp``."""
    mine = by.base != 0
    return Value(
        first.base, np.where(mine, first.slopes, second.slopes), by.bad | np.where(mine, first.bad, second.bad)
    )


def logical_rule(name: str, first: Value, second: Value) -> Value:
    """The transfer function of ``and`` and ``or`` of predicates, which one of them may decide."""
    decides = np.uint64(name == "or")
    bad = first.bad | second.bad
    for x in (first, second):
        bad = bad & ~(x.invariant & ((x.base & low_mask(1)) == decides))
    return Value(first.base, np.zeros_like(first.slopes), bad)
