"""Which bits of a register are known: a word of memory often holds a status, which is known, beside unknown data.

A value of all lanes is a pair of arrays: ``value``, with zeros where it is unknown, and ``unknown``, the mask of those
bits. It stands for all values that agree with it in the other bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.lane_arithmetic import Word, lane_function, low_mask, to_number, truncate, type_bits
from mcheck.isa.kinds import Kind

EVERY = np.uint64((1 << 64) - 1)
ZERO, ONE = np.uint64(0), np.uint64(1)

BY_BIT: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("and", "or", "xor"), (0, 1)), "not": (0,), "lop3": (0, 1, 2), "selp": (0, 1, 2),
    "shl": (0,), "shr": (0,), "bfe": (0,), "bfi": (0, 1), "prmt": (0, 1), "shf": (0, 1), "cvt": (0,), "brev": (0,),
}  # fmt: skip
"""Sources of which each bit of the result depends on at most one bit, if the other sources are known."""
ORDERED = {
    "lt": (True, True), "lo": (True, True), "le": (True, False), "ls": (True, False),
    "gt": (False, True), "hi": (False, True), "ge": (False, False), "hs": (False, False),
}  # fmt: skip
"""Comparisons: whether the left one is the smaller one, and whether they may not be equal."""


@dataclass(frozen=True, slots=True)
class Bits:
    """A register of several lanes."""

    value: Word
    unknown: Word

    def where(self, mask: np.ndarray, other: Bits) -> Bits:
        """This in the lanes of a mask, the other one elsewhere."""
        return Bits(np.where(mask, self.value, other.value), np.where(mask, self.unknown, other.unknown))

    def join(self, other: Bits) -> Bits:
        """What is known if it is one of both."""
        unknown = self.unknown | other.unknown | (self.value ^ other.value)
        return Bits(self.value & ~unknown, unknown)

    @property
    def filled(self) -> Word:
        """The value with all unknown bits set."""
        return self.value | self.unknown


def known(value: Word) -> Bits:
    """A value of which everything is known."""
    return Bits(value, np.zeros_like(value))


def anything(bits: int, shape: tuple[int, ...]) -> Bits:
    """A value of so many bits of which nothing is known."""
    return Bits(np.zeros(shape, np.uint64), np.full(shape, low_mask(bits)))


def extend(given: Bits, kind: str) -> Bits:
    """A value of a type in a register that is wider (9.4.1): with its sign if it has one."""
    bits = type_bits(kind)
    if kind[0] != "s" or bits >= 64:
        return given
    top, above = np.uint64(1 << bits - 1), EVERY ^ low_mask(bits)
    value = np.where(given.value & top != 0, given.value | above, given.value)
    unknown = np.where(given.unknown & top != 0, given.unknown | above, given.unknown)
    return Bits(value, unknown)


def compute(
    statement: ptx.Statement, fetch: Callable[[ptx.Operand], Bits], shape: tuple[int, ...]
) -> list[Bits] | None:
    """The results of an instruction that only computes, one for each register that it writes; ``None`` if its results
    are opaque.
    """
    try:
        return _compute(statement, fetch, shape)
    except LookupError:
        return None


def _compute(
    statement: ptx.Statement, fetch: Callable[[ptx.Operand], Bits], shape: tuple[int, ...]
) -> list[Bits] | None:
    if statement.kind is Kind.MOVE:
        return _move(statement, fetch)
    if statement.kind is Kind.ADDRESS_CONVERSION or statement.opcode.name == "setp":
        given = [fetch(operand) for operand in statement.operands[1:]]
        if statement.opcode.name == "setp":
            return _compare(statement, given)
        return given if statement.opcode.space == "global" else None
    function = lane_function(statement.opcode)
    if function is None:
        return None
    given = [fetch(operand) for operand in statement.operands[1:]]
    if not any(one.unknown.any() for one in given):
        if statement.opcode.name in ("div", "rem"):
            return None
        return [known(_spread(r, shape)) for r in function(*(one.value for one in given))]
    data = BY_BIT.get(statement.opcode.name, ())
    if statement.opcode.name == "cvt" and statement.opcode.has("sat"):
        data = ()
    if any(one.unknown.any() for k, one in enumerate(given) if k not in data):
        some = reduce(np.bitwise_or, (one.unknown for one in given)) != 0
        (result,) = function(*(one.value for one in given))
        wide = np.uint64(EVERY)
        unknown = np.where(some, wide, ZERO)
        return [Bits(_spread(result & ~unknown, shape), _spread(unknown, shape))]
    corners = [
        function(*(one.filled if k in data and fills[data.index(k)] else one.value for k, one in enumerate(given)))[0]
        for fills in product((False, True), repeat=len(data))
    ]
    unknown = reduce(np.bitwise_or, (corner ^ corners[0] for corner in corners))
    return [Bits(_spread(corners[0] & ~unknown, shape), _spread(unknown, shape))]


def _spread(given: Word, shape: tuple[int, ...]) -> Word:
    """A result for these lanes, for each of their cases if it has some."""
    return np.broadcast_to(given, np.broadcast_shapes(np.shape(given), shape))


def _move(statement: ptx.Statement, fetch: Callable[[ptx.Operand], Bits]) -> list[Bits] | None:
    target, source = statement.operands
    bits = type_bits(statement.opcode.type)
    if not 0 < bits <= 64:
        return None
    if isinstance(source, ptx.Vector) and not isinstance(target, ptx.Vector):
        size = bits // len(source.items)
        parts = [fetch(item) for item in source.items]
        value = reduce(np.bitwise_or, (truncate(p.value, size) << np.uint64(j * size) for j, p in enumerate(parts)))
        unknown = reduce(np.bitwise_or, (truncate(p.unknown, size) << np.uint64(j * size) for j, p in enumerate(parts)))
        return [Bits(value, unknown)]
    if isinstance(source, ptx.Vector):
        return None
    whole = fetch(source)
    if not isinstance(target, ptx.Vector):
        return [Bits(truncate(whole.value, bits), truncate(whole.unknown, bits))]
    size = bits // len(target.items)
    return [
        Bits(truncate(whole.value >> np.uint64(j * size), size), truncate(whole.unknown >> np.uint64(j * size), size))
        for j, item in enumerate(target.items)
        if isinstance(item, ptx.Register)
    ]


def _compare(statement: ptx.Statement, given: Sequence[Bits]) -> list[Bits] | None:
    function = lane_function(statement.opcode)
    if function is None:
        return None
    a, b, *third = given
    shape = np.broadcast_shapes(*(one.value.shape for one in given))
    kind, test = statement.opcode.type, statement.opcode.mode
    if len(statement.opcode.parts) == 3 and not third and kind[0] in "bus":
        true, false = _decided(test, kind, a, b)
        value, unknown = true.astype(np.uint64), (~true & ~false).astype(np.uint64)
        results = [Bits(value, unknown), Bits(false.astype(np.uint64), unknown)]
    else:
        some = reduce(np.bitwise_or, (np.broadcast_to(one.unknown, shape) for one in given)) != 0
        made = function(*(one.value for one in given))
        results = [Bits(np.where(some, ZERO, r), np.where(some, ONE, ZERO)) for r in made]
    target = statement.operands[0]
    written = target.items if isinstance(target, ptx.Vector) else (target,)
    if isinstance(target, ptx.Pair):
        written = (target.first, target.second)
    return [result for result, one in zip(results, written, strict=False) if isinstance(one, ptx.Register)]


def _decided(test: str, kind: str, a: Bits, b: Bits) -> tuple[np.ndarray, np.ndarray]:
    """Where a comparison is sure to hold, and where it is sure not to."""
    width = low_mask(type_bits(kind))
    both = ~(a.unknown | b.unknown) & width
    differ = ((a.value ^ b.value) & both) != 0
    equal = ((a.unknown | b.unknown) & width == 0) & ~differ
    if test in ("eq", "ne"):
        return (equal, differ) if test == "eq" else (differ, equal)
    if test not in ORDERED:
        nowhere = np.zeros(np.broadcast_shapes(a.value.shape, b.value.shape), np.bool_)
        return nowhere, nowhere
    if test in ("lo", "ls", "hi", "hs"):
        kind = "u" + kind[1:]
    sign = np.uint64(1 << type_bits(kind) - 1) if kind[0] == "s" else ZERO

    def bounds(one: Bits) -> tuple[np.ndarray, np.ndarray]:
        turned = one.unknown & sign
        return to_number(one.value | turned, kind), to_number(one.filled & ~turned, kind)

    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    smaller, strict = ORDERED[test]
    if not smaller:
        a_low, a_high, b_low, b_high = b_low, b_high, a_low, a_high
    if strict:
        return a_high < b_low, a_low >= b_high
    return a_high <= b_low, a_low > b_high
