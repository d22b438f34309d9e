"""What one read-modify-write makes of a value: atom, red, cp.reduce.async.bulk, its tensor form and red.async.

Values are bit patterns. PTX ISA 9.0 sections 9.7.13.5 (atom), 9.7.13.6 (red), 9.7.13.7 (red.async), 9.7.9.25.4.2 and,
for the tensor form, 9.2 section 9.7.9.25.5.3. They leave open how min and max of f16 and bf16 treat NaN; here they do
as the min and max instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mcheck.ir.expr import apply_binary
from mcheck.semantics import floats

_NUMBERS = frozenset({"u32", "s32", "u64"})
_ORDERED = _NUMBERS | {"s64", "f16", "bf16"}
_WORDS = frozenset({"b32", "b64"})
_COUNTED = frozenset({"u32"})
TENSOR_REDUCTIONS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "add": _NUMBERS | {"f32", "f16", "bf16"},
        "min": _ORDERED,
        "max": _ORDERED,
        "inc": _COUNTED,
        "dec": _COUNTED,
        "and": _WORDS,
        "or": _WORDS,
        "xor": _WORDS,
    }
)
"""The reductions of ``cp.reduce.async.bulk.tensor``: operation -> the types that elements may have."""


def element_size(type_: str) -> int:
    """Bytes of one element: the digits of the type's name, doubled for the packed pairs."""
    base, _, pair = type_.partition("x")
    return int(base.lstrip("abcdefghijklmnopqrstuvwxyz")) * (int(pair) if pair else 1) // 8


def reduce(op: str, type_: str, old: int, operand: int, *, flush_subnormals: bool = True) -> int:
    """The new value of a location that held ``old``, both being bit patterns of ``type_``.

    ``inc`` and ``dec`` wrap at ``operand`` as those of atom do. Floating-point results are rounded to nearest even.
    ``flush_subnormals`` holds for f32 addition alone, which up to PTX ISA 9.3 takes and gives subnormal numbers as
    zeros of their sign (9.4 and atom on shared memory preserve them); f16 and bf16 are ``.noftz``, f64 has no flushing.
    Raises ``ZeroDivisionError`` for a division by zero, whose result is unspecified (9.7.1.8).
    """
    if type_ in floats.FORMATS:
        return _reduce_float(op, type_, old, operand, flush_subnormals)
    if "x" in type_:
        return _reduce_pair(op, type_, old, operand)
    bits = 8 * element_size(type_)
    mask = (1 << bits) - 1
    old &= mask
    operand &= mask
    a, b = (_signed(old, bits), _signed(operand, bits)) if type_[0] == "s" else (old, operand)
    match op:
        case "add":
            return (old + operand) & mask
        case "sub":
            return (old - operand) & mask
        case "mul":
            return (old * operand) & mask
        case "div":
            return apply_binary("/", a, b) & mask
        case "min":
            return min(a, b) & mask
        case "max":
            return max(a, b) & mask
        case "inc":
            return 0 if old >= operand else old + 1
        case "dec":
            return operand if old == 0 or old > operand else old - 1
        case "and":
            return old & operand
        case "or":
            return old | operand
        case "xor":
            return old ^ operand
        case "exch":
            return operand
    raise KeyError(op)


def atomic(op: str, type_: str, old: int, operands: Sequence[int], *, flush_subnormals: bool = True) -> int:
    """The same for ``atom`` and ``red``, whose ``cas`` has two operands: the value compared with, and the new one."""
    if op == "cas":
        mask = (1 << 8 * element_size(type_)) - 1
        expected, new = operands
        return new & mask if old & mask == expected & mask else old & mask
    (operand,) = operands
    return reduce(op, type_, old, operand, flush_subnormals=flush_subnormals)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _reduce_float(op: str, type_: str, old: int, operand: int, flush_subnormals: bool) -> int:
    form = floats.FORMATS[type_]
    match op:
        case "add":
            if type_ == "f32" and flush_subnormals:
                total = floats.add(form, floats.flush(form, old), floats.flush(form, operand))
                return floats.flush(form, total)
            return floats.add(form, old, operand)
        case "min":
            return floats.smallest(form, old, operand)
        case "max":
            return floats.largest(form, old, operand)
        case "exch":
            return operand
    raise KeyError(op)


def _reduce_pair(op: str, type_: str, old: int, operand: int) -> int:
    """A packed pair is two elements of half the width, each on its own."""
    half = type_.partition("x")[0]
    low = reduce(op, half, old & 0xFFFF, operand & 0xFFFF)
    return reduce(op, half, old >> 16 & 0xFFFF, operand >> 16 & 0xFFFF) << 16 | low
