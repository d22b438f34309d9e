"""Integer arithmetic on all lanes at once (PTX ISA 9.7.1, 9.7.5, 9.7.7 to 9.7.9).

A register of all lanes is an array of ``uint64`` that holds the bits of each lane's value, zero above the width of the
register. ``arithmetic`` gives for an instruction the function from the arrays of its sources to those of its
destinations, or ``None`` where the result is opaque here (floating point, video, carries).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.ir.type_sizes import TYPE_BITS
from mcheck.isa.opcode import Opcode

Word = NDArray[np.uint64]
Function = Callable[..., tuple[Word, ...]]

_U64 = np.uint64
_ONE, _ZERO = _U64(1), _U64(0)


def type_bits(kind: str) -> int:
    """The bits of a PTX type; 0 for an unknown type."""
    return TYPE_BITS.get(kind, 0)


def is_floating(kind: str) -> bool:
    """Whether a type is a floating-point type, packed or not."""
    return kind.startswith(("f", "bf", "tf", "e"))


def is_packed(kind: str) -> bool:
    """Whether a type is a vector of numbers in one register."""
    return kind.endswith(("x2", "x4"))


@cache
def low_mask(bits: int) -> np.uint64:
    """A mask of the low bits."""
    return _U64((1 << min(bits, 64)) - 1)


def truncate(value: Word, bits: int) -> Word:
    """The low bits of a value."""
    return value if bits >= 64 else value & low_mask(bits)


def to_signed(value: Word, bits: int) -> NDArray[np.int64]:
    """The value as a two's complement number."""
    if bits >= 64:
        return value.astype(np.int64)
    up = _U64(64 - bits)
    out: NDArray[np.int64] = (value << up).astype(np.int64) >> np.int64(64 - bits)
    return out


def _bits(value: Any) -> Word:
    return np.asarray(value).astype(np.uint64)


def to_number(value: Word, kind: str) -> Any:
    """The values as numbers of an integer type."""
    bits = type_bits(kind)
    return to_signed(value, bits) if kind[0] == "s" else truncate(value, bits)


# --- functions of a kind ------------------------------------------------------------------------------------


def _basic_function(name: str, kind: str) -> Function | None:
    bits = type_bits(kind)
    plain: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "neg": lambda a: _ZERO - a,
        "cnot": lambda a: _bits(a == 0),
        "abs": lambda a: _bits(np.abs(to_signed(a, bits))),
        "min": lambda a, b: _bits(np.minimum(to_number(a, kind), to_number(b, kind))),
        "max": lambda a, b: _bits(np.maximum(to_number(a, kind), to_number(b, kind))),
        "div": lambda a, b: _divide(a, b, kind)[0],
        "rem": lambda a, b: _divide(a, b, kind)[1],
        "sad": lambda a, b, c: c + _bits(np.maximum(to_number(a, kind), to_number(b, kind)))
        - _bits(np.minimum(to_number(a, kind), to_number(b, kind))),
        "popc": popcount,
        "clz": lambda a: _U64(bits) - _length(truncate(a, bits)),
        "brev": lambda a: _reversed(a, bits),
    }  # fmt: skip
    function = plain.get(name)
    if function is None or is_floating(kind) or is_packed(kind):
        return None
    out = 32 if name in ("popc", "clz") else bits
    return lambda *sources: (truncate(_bits(function(*(truncate(s, bits) for s in sources))), out),)


def _divide(a: Word, b: Word, kind: str) -> tuple[Word, Word]:
    """Quotient and remainder, rounded towards zero; any value for a division by zero."""
    bits = type_bits(kind)
    safe = np.where(b == 0, _ONE, b)
    if kind[0] == "u":
        return np.where(b == 0, low_mask(bits), a // safe), np.where(b == 0, a, a % safe)
    x, y = to_signed(a, bits), to_signed(safe, bits)
    size = np.abs(x).astype(np.uint64) // np.abs(y).astype(np.uint64)
    quotient = np.where((x < 0) == (y < 0), size, _ZERO - size)
    return np.where(b == 0, low_mask(bits), quotient), np.where(b == 0, a, a - quotient * safe)


def divides_by_zero(opcode: Opcode, sources: Sequence[Word]) -> NDArray[np.bool_]:
    """The lanes in which a quotient or a remainder is unspecified (9.7.1.8)."""
    if opcode.name not in ("div", "rem") or is_floating(opcode.type):
        return np.zeros(1, np.bool_)
    return np.asarray(truncate(sources[1], type_bits(opcode.type)) == 0)


def popcount(a: Word) -> Word:
    """The number of bits that are set."""
    a = a - (a >> _ONE & _U64(0x5555555555555555))
    a = (a & _U64(0x3333333333333333)) + (a >> _U64(2) & _U64(0x3333333333333333))
    a = a + (a >> _U64(4)) & _U64(0x0F0F0F0F0F0F0F0F)
    return a * _U64(0x0101010101010101) >> _U64(56)


def _length(a: Word) -> Word:
    """The number of bits of a value up to its highest one."""
    out = np.zeros_like(a)
    rest = a.copy()
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> _U64(step)
        more = high != 0
        out += np.where(more, _U64(step), _ZERO)
        rest = np.where(more, high, rest)
    return out + _bits(rest != 0)


def _reversed(a: Word, bits: int) -> Word:
    out = np.zeros_like(a)
    for k in range(bits):
        out |= (a >> _U64(k) & _ONE) << _U64(bits - 1 - k)
    return out


def _product(a: Word, b: Word, kind: str, half: str) -> Word:
    bits = type_bits(kind)
    if half == "wide" or (half == "hi" and bits < 64):
        whole = _bits(to_number(a, kind)) * _bits(to_number(b, kind))
        return truncate(whole, 2 * bits) if half == "wide" else truncate(whole >> _U64(bits), bits)
    if half == "hi":
        return _high(a, b, kind)
    return truncate(a * b, bits)


def _high(a: Word, b: Word, kind: str) -> Word:
    """The upper half of a product of 64-bit numbers."""
    low = _U64(0xFFFFFFFF)
    half = _U64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & low)
    out = a1 * b1 + (middle >> half) + (other >> half)
    if kind[0] == "s":
        out = out - np.where(to_signed(a, 64) < 0, b, _ZERO) - np.where(to_signed(b, 64) < 0, a, _ZERO)
    return _bits(out)


def _shift(name: str, a: Word, by: Word, kind: str) -> Word:
    """Shift; amounts from the width on shift everything out (9.7.8.7, 9.7.8.8)."""
    bits = type_bits(kind)
    by = truncate(by, 32)
    if name == "shl":
        return _bits(np.where(by >= bits, _ZERO, truncate(truncate(a, bits) << np.minimum(by, _U64(63)), bits)))
    if kind[0] == "s":
        return truncate(_bits(to_signed(a, bits) >> np.minimum(by, _U64(min(bits, 63))).astype(np.int64)), bits)
    return _bits(np.where(by >= bits, _ZERO, truncate(a, bits) >> np.minimum(by, _U64(63))))


_FLOAT = {"f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64)}
_INTEGER_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def compare_lanes(test: str, kind: str, a: Word, b: Word) -> NDArray[np.bool_] | None:
    """``a test b``; ``None`` for an unsupported type."""
    if kind in _FLOAT:
        raw, real = _FLOAT[kind]
        x, y = (np.asarray(v).astype(raw).view(real) for v in (a, b))
        unordered = np.isnan(x) | np.isnan(y)
        if test in ("num", "nan"):
            return np.asarray(unordered if test == "nan" else ~unordered)
        base = test.removesuffix("u") if test.endswith("u") and test != "u" else test
        if base not in _INTEGER_TESTS:
            return None
        out: NDArray[np.bool_] = _INTEGER_TESTS[base](x, y)
        return np.asarray(out | unordered if base != test else out & ~unordered)
    if test not in _INTEGER_TESTS or not type_bits(kind) or is_floating(kind) or is_packed(kind):
        return None
    if kind[0] == "s" and test in ("lo", "ls", "hi", "hs"):
        kind = "u" + kind[1:]
    return np.asarray(_INTEGER_TESTS[test](to_number(a, kind), to_number(b, kind)))


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def _setp(opcode: Opcode) -> Function | None:
    kind, parts = opcode.type, [p for p in opcode.parts[1:-1] if p != "ftz"]
    test, combine = parts[0], _COMBINE.get(parts[1]) if len(parts) > 1 else None
    probe = np.zeros(1, np.uint64)
    if compare_lanes(test, kind, probe, probe) is None or (len(parts) > 1 and combine is None):
        return None

    def run(a: Word, b: Word, *third: Word) -> tuple[Word, ...]:
        holds = compare_lanes(test, kind, a, b)
        assert holds is not None
        both = holds, ~holds
        if combine is not None:
            both = combine(holds, third[0] != 0), combine(~holds, third[0] != 0)
        return _bits(both[0]), _bits(both[1])

    return run


def _cvt(opcode: Opcode) -> Function | None:
    to, source = opcode.parts[-2], opcode.type
    if "f" in to + source or not type_bits(to) or not type_bits(source) or opcode.has("pack"):
        return None
    bits = type_bits(to)
    if not opcode.has("sat"):
        return lambda a: (truncate(_bits(to_number(truncate(a, type_bits(source)), source)), bits),)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)

    def clamp(a: Word) -> tuple[Word, ...]:
        values = [max(least, min(most, int(v))) & (1 << bits) - 1 for v in np.atleast_1d(to_number(a, source))]
        return (np.array(values, np.uint64).reshape(np.shape(a)),)

    return clamp


def _bfe(kind: str) -> Function:
    bits = type_bits(kind)

    def run(a: Word, pos: Word, length: Word) -> tuple[Word, ...]:
        p, n = pos & _U64(255), length & _U64(255)
        n = np.minimum(n, _U64(64))
        field = np.where(p >= bits, _ZERO, truncate(a, bits) >> np.minimum(p, _U64(63)))
        mask = np.where(n >= 64, low_mask(64), (_ONE << np.minimum(n, _U64(63))) - _ONE)
        value = field & mask
        if kind[0] == "s":
            at = np.minimum(p + n - _ONE, _U64(bits - 1))
            sign = np.where(n == 0, _ZERO, truncate(a, bits) >> at & _ONE)
            value = np.where(sign != 0, value | ~mask, value)
            value = np.where(
                (sign != 0) & (p + n > bits), value | ~np.where(p >= bits, _ZERO, low_mask(bits) >> p), value
            )
        return (truncate(_bits(value), bits),)

    return run


def _bfi(kind: str) -> Function:
    bits = type_bits(kind)

    def run(a: Word, b: Word, pos: Word, length: Word) -> tuple[Word, ...]:
        p, n = pos & _U64(255), np.minimum(length & _U64(255), _U64(64))
        mask = np.where(n >= 64, low_mask(64), (_ONE << np.minimum(n, _U64(63))) - _ONE)
        placed = np.where(p >= 64, _ZERO, mask << np.minimum(p, _U64(63)))
        moved = np.where(p >= 64, _ZERO, a << np.minimum(p, _U64(63)))
        return (truncate((b & ~placed) | (moved & placed), bits),)

    return run


def _bfind(opcode: Opcode) -> Function:
    kind = opcode.type
    bits = type_bits(kind)

    def run(a: Word) -> tuple[Word, ...]:
        value = truncate(_bits(np.where(to_signed(a, bits) < 0, ~a, a)) if kind[0] == "s" else a, bits)
        size = _length(value)
        found = _U64(bits) - size if opcode.has("shiftamt") else size - _ONE
        return (np.where(size == 0, low_mask(32), truncate(found, 32)),)

    return run


def _lop3(opcode: Opcode) -> Function | None:
    if not opcode.has("b32") or opcode.mode != "b32":
        return None

    def run(a: Word, b: Word, c: Word, table: Word) -> tuple[Word, ...]:
        out = np.zeros_like(a | b | c)
        for k in range(8):
            term = (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
            out = out | np.where(table >> _U64(k) & _ONE, term, _ZERO)
        return (truncate(out, 32),)

    return run


def _prmt(opcode: Opcode) -> Function | None:
    if opcode.parts[1:] != ("b32",):  # the other modes select in other ways
        return None

    def run(a: Word, b: Word, selector: Word) -> tuple[Word, ...]:
        both = truncate(a, 32) | truncate(b, 32) << _U64(32)
        out = np.zeros_like(both | selector)
        for k in range(4):
            which = selector >> _U64(4 * k) & _U64(15)
            byte = both >> ((which & _U64(7)) * _U64(8)) & _U64(255)
            byte = np.where(which >> _U64(3) & _ONE, np.where(byte >> _U64(7), _U64(255), _ZERO), byte)
            out = out | byte << _U64(8 * k)
        return (out,)

    return run


def _shf(opcode: Opcode) -> Function:
    left, wrap = opcode.mode == "l", opcode.parts[2] == "wrap"

    def run(a: Word, b: Word, by: Word) -> tuple[Word, ...]:
        n = by & _U64(31) if wrap else np.minimum(truncate(by, 32), _U64(32))
        both = truncate(a, 32) | truncate(b, 32) << _U64(32)
        if left:
            return (_bits(np.where(n == 32, truncate(a, 32), both << np.minimum(n, _U64(31)) >> _U64(32))),)
        return (truncate(_bits(both >> n), 32),)

    return run


@cache
def lane_function(opcode: Opcode) -> Function | None:
    """The function that an instruction computes from its sources, ``None`` if it is opaque."""
    name, kind = opcode.name, opcode.type
    if opcode.has("cc") or (name in ("add", "sub", "mad") and opcode.has("sat")) or name in ("addc", "subc", "madc"):
        return None
    if name in ("min", "max") and opcode.has("relu"):
        return None
    match name:
        case "setp":
            return _setp(opcode)
        case "cvt":
            return _cvt(opcode)
        case "selp":
            return lambda a, b, p: (_bits(np.where(p != 0, a, b)),)
        case "shl" | "shr":
            return lambda a, by: (_shift(name, a, by, kind),)
        case "mul" | "mad" if kind[0] in "us" and opcode.mode in ("lo", "hi", "wide"):
            bits = type_bits(kind) * (2 if opcode.mode == "wide" else 1)
            return lambda a, b, *c: (truncate(_product(a, b, kind, opcode.mode) + (c[0] if c else _ZERO), bits),)
        case "mul24" | "mad24" if opcode.mode == "lo":
            narrow = kind[0] + "24"
            return lambda a, b, *c: (
                truncate(_bits(to_number(a, narrow)) * _bits(to_number(b, narrow)) + (c[0] if c else _ZERO), 32),
            )
        case "bfe":
            return _bfe(kind)
        case "bfi":
            return _bfi(kind)
        case "bfind":
            return _bfind(opcode)
        case "lop3":
            return _lop3(opcode)
        case "prmt":
            return _prmt(opcode)
        case "shf":
            return _shf(opcode)
    return _basic_function(name, kind)
