"""Concrete integer semantics of the local instructions (PTX ISA 9.7.1, 9.7.6, 9.7.8, 9.7.9).

Values are Python integers: those of a signed type lie in its signed range, those of unsigned and untyped bits are not
negative, a predicate is 0 or 1. Sources may be given in any representation; they are first brought into the range of
their type. Floating-point types count as their bits (``mov`` and ``selp`` move them).

``mapa`` depends on the place of the thread and is not computed here; nor is what ``UNCOMPUTED`` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcheck.base.errors import InternalError
from mcheck.ir.type_sizes import TYPE_BITS

UNCOMPUTED = ("activemask", "opaque")
"""Operations of whose results nothing is known."""

_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def width(type_name: str) -> int:
    """The bits of a PTX type (without its dot)."""
    return TYPE_BITS[type_name]


def wrap(type_name: str, value: int) -> int:
    """``value`` wrapped to the range of ``type_name``."""
    bits = width(type_name)
    value &= (1 << bits) - 1
    if type_name[0] == "s" and value >> (bits - 1):
        value -= 1 << bits
    return value


def bounds(type_name: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = width(type_name)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_name[0] == "s" else (0, (1 << bits) - 1)


def saturate(type_name: str, value: int) -> int:
    """``value`` clamped to the range of ``type_name``."""
    least, greatest = bounds(type_name)
    return max(least, min(greatest, value))


def has_value(op: str, type: str, values: Sequence[int]) -> bool:  # noqa: A002
    """Whether the results are defined: quotient and remainder of a division by zero are unspecified (9.7.1.8)."""
    return op not in ("div", "rem") or bool(wrap(type, values[1]))


def compute(
    op: str,
    type: str,  # noqa: A002
    src_type: str | None,
    values: Sequence[int],
    results: int = 1,
) -> tuple[int, ...]:
    """The results of ``op.type`` on ``values``, one for each of ``results`` destinations.

    ``setp`` gives both destinations ``(p, q)``; a caller with one takes the first. ``src_type`` is the source type
    of ``cvt``. Raises ``ZeroDivisionError`` where ``has_value`` says that there are none.
    """
    name, _, mode = op.partition(".")
    if name == "setp":
        return _setp(mode, type, values)
    if name == "cvt":
        source = wrap(src_type or type, values[0])
        return (saturate(type, source) if mode == "sat" else wrap(type, source),)
    if name in ("mul", "mad"):
        return (_multiply(mode, type, values),)
    if name in ("shl", "shr"):
        return (_shift(name, type, values[0], values[1]),)
    if name == "selp":
        return (wrap(type, values[0] if values[2] else values[1]),)
    if name == "nop":
        return ()
    if name == "pack":
        bits = width(type) // len(values)
        return (sum((value & ((1 << bits) - 1)) << (k * bits) for k, value in enumerate(values)),)
    if name == "unpack":
        bits = width(type) // results
        return tuple(values[0] >> (k * bits) & ((1 << bits) - 1) for k in range(results))
    function = _FUNCTIONS.get(name)
    if function is None:
        raise InternalError(f"no local semantics for '{op}'")
    result = function(*(wrap(type, value) for value in values))
    return (saturate(type, result) if mode == "sat" else wrap(type, result),)


def _quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "mov": lambda a: a,
    "cvta": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": _quotient,
    "rem": _remainder,
    "min": min,
    "max": max,
    "abs": abs,
    "neg": lambda a: -a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
}


def _multiply(mode: str, type_name: str, values: Sequence[int]) -> int:
    """``mul`` and ``mad`` (a third value): low half, high half, or everything in the type of twice the width."""
    half, _, saturating = mode.partition(".")
    product = wrap(type_name, values[0]) * wrap(type_name, values[1])
    result_type = _WIDER[type_name] if half == "wide" else type_name
    if half == "hi":
        product >>= width(type_name)
    if len(values) > 2:
        product += wrap(result_type, values[2])
    return saturate(result_type, product) if saturating else wrap(result_type, product)


def _shift(name: str, type_name: str, value: int, amount: int) -> int:
    """Amounts above the width count as the width; ``shr`` of a signed type keeps the sign (PTX ISA 9.7.8.8)."""
    places = min(wrap("u32", amount), width(type_name))
    value = wrap(type_name, value)
    return wrap(type_name, value << places if name == "shl" else value >> places)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}


def _setp(mode: str, type_name: str, values: Sequence[int]) -> tuple[int, int]:
    """``p`` is the comparison, ``q`` its negation, both combined with the third value by a Boolean operation."""
    comparison, _, combine = mode.partition(".")
    holds = _COMPARE[comparison](wrap(type_name, values[0]), wrap(type_name, values[1]))
    both = int(holds), int(not holds)
    if not combine:
        return both
    third = int(bool(values[2]))
    p, q = (_FUNCTIONS[combine](result, third) for result in both)
    return p, q
