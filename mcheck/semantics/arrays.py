"""Reductions and conversions of whole arrays, bit for bit those of ``reductions`` and ``floats``, by NumPy.

Arrays are bytes (``uint8``) in memory order, little-endian, of any shape whose last axis is a multiple of the element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcheck.semantics import floats
from mcheck.semantics.reductions import element_size
from mcheck.semantics.subnormals import flushing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Words = NDArray[Any]

BLOCK = 1 << 18
"""Numbers of f32 that are added at a time: a megabyte."""


def reduce_array(op: str, type_: str, old: Bytes, operand: Bytes, *, flush: bool = True) -> Bytes:
    """``old`` reduced element by element with ``operand``; types and ``flush`` as ``reductions.reduce`` has them."""
    import numpy as np

    if type_ in floats.FORMATS:
        return _floats(op, type_, old, operand, flush)
    kind = "i" if type_[0] == "s" else "u"
    word = np.dtype(f"<{kind}{element_size(type_)}")
    a, b = np.ascontiguousarray(old).view(word), np.ascontiguousarray(operand).view(word)
    function = _INTEGERS.get(op)
    if function is None:
        raise KeyError(op)
    result: Words = function(a, b)
    return result.astype(word, copy=False).view(np.uint8)


def _inc(a: Words, b: Words) -> Words:
    import numpy as np

    return np.where(a >= b, 0, a + a.dtype.type(1))


def _dec(a: Words, b: Words) -> Words:
    import numpy as np

    return np.where((a == 0) | (a > b), b, a - a.dtype.type(1))


def _by_name(name: str) -> Callable[[Words, Words], Words]:
    def apply(a: Words, b: Words) -> Words:
        import numpy as np

        result: Words = getattr(np, name)(a, b)
        return result

    return apply


_INTEGERS: dict[str, Callable[[Words, Words], Words]] = {
    "add": _by_name("add"),
    "min": _by_name("minimum"),
    "max": _by_name("maximum"),
    "and": _by_name("bitwise_and"),
    "or": _by_name("bitwise_or"),
    "xor": _by_name("bitwise_xor"),
    "inc": _inc,
    "dec": _dec,
}


def _floats(op: str, type_: str, old: Bytes, operand: Bytes, flush: bool) -> Bytes:
    import numpy as np

    if op == "add" and type_ == "f32" and flush:
        quick = _plain_sum(np.ascontiguousarray(old).view("<f4"), np.ascontiguousarray(operand).view("<f4"))
        if quick is not None:
            return quick.view(np.uint8)
    form = floats.FORMATS[type_]
    word = np.dtype(f"<u{form.bits // 8}")
    a, b = np.ascontiguousarray(old).view(word), np.ascontiguousarray(operand).view(word)
    magnitude = word.type(form.sign - 1)
    infinity = word.type(form.infinity)
    if op in ("min", "max"):
        x, y = _ordered(form, a), _ordered(form, b)
        first = x < y if op == "min" else y < x
        result = np.where(first, a, b)
        a_nan, b_nan = (a & magnitude) > infinity, (b & magnitude) > infinity
        result = np.where(a_nan, b, np.where(b_nan, a, result))
        result = np.where(a_nan & b_nan, word.type(form.nan), result)
        return result.astype(word, copy=False).view(np.uint8)
    if op != "add":
        raise KeyError(op)
    if type_ == "f32" and flush:
        a, b = _flushed(form, a), _flushed(form, b)
    with np.errstate(all="ignore"):
        total = _sum(type_, a, b)
    if type_ == "f32" and flush:
        total = _flushed(form, total)
    if type_ == "f32" and not np.isnan(total.view("<f4")).any():
        return total.astype(word, copy=False).view(np.uint8)
    total = np.where((total & magnitude) > infinity, word.type(form.nan), total)
    if type_ == "f64":
        # A NaN operand comes out as it went in, the new one before the old one.
        total = np.where((a & magnitude) > infinity, a, total)
        total = np.where((b & magnitude) > infinity, b, total)
    return total.astype(word, copy=False).view(np.uint8)


def _plain_sum(a: Words, b: Words) -> Words | None:
    """a + b in f32, subnormals flushed; ``None`` where the processor does not flush them, or some sum is NaN.

    The sum of all squares is NaN where one of the sums is, and takes a pass that only reads.
    """
    import numpy as np

    total: Words = np.empty_like(a)
    rows, x, y = total.reshape(-1), a.reshape(-1), b.reshape(-1)
    squares = 0.0
    with flushing() as flushed, np.errstate(all="ignore"):
        if not flushed:
            return None
        # In blocks, so that a sum is looked at while the processor's cache still has it.
        for start in range(0, rows.size, BLOCK):
            part = slice(start, start + BLOCK)
            row = np.add(x[part], y[part], out=rows[part])
            squares += float(np.dot(row, row))
    return None if squares != squares else total


def _sum(type_: str, a: Words, b: Words) -> Words:
    """The patterns of a + b.

    f16 and bf16 are added in f32: its 24 bits are at least twice their 11 and 8 and two more, so that rounding twice
    gives what rounding once does.
    """
    import numpy as np

    if type_ == "f32":
        return np.asarray((a.view("<f4") + b.view("<f4")).view("<u4"))
    if type_ == "f64":
        return np.asarray((a.view("<f8") + b.view("<f8")).view("<u8"))
    if type_ == "f16":
        wide = a.view("<f2").astype("<f4") + b.view("<f2").astype("<f4")
        return np.asarray(wide.astype("<f2").view("<u2"))
    x = (a.astype("<u4") << np.uint32(16)).view("<f4")
    y = (b.astype("<u4") << np.uint32(16)).view("<f4")
    bits = (x + y).view("<u4")
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(nan, np.uint32(0x7FFF), rounded).astype("<u2")


def _ordered(form: floats.Format, bits: Words) -> Words:
    """Signed integers in the order of the numbers, -0 below +0."""
    import numpy as np

    signed = np.dtype(f"<i{form.bits // 8}")
    magnitude = (bits & bits.dtype.type(form.sign - 1)).astype(signed)
    return np.asarray(np.where(bits & bits.dtype.type(form.sign), -1 - magnitude, magnitude))


def _flushed(form: floats.Format, bits: Words) -> Words:
    """Subnormal numbers become the zero of their sign."""
    import numpy as np

    # One pass that looks for a number between 0 and the least normal one, since there mostly is none.
    doubled = bits << bits.dtype.type(1)
    doubled -= bits.dtype.type(1)
    if bits.size == 0 or doubled.min() >= (2 << form.mantissa) - 1:
        return bits
    small = (bits & bits.dtype.type(form.infinity)) == 0
    return np.where(small, bits & bits.dtype.type(form.sign), bits)


def convert_elements(elemtype: str, data: Bytes) -> Bytes:
    """What a tensor load makes of elements inside the tensor: tf32 maps round, all others copy.

    The documents do not say what the .ftz of f32 and tf32 maps does to a copy; an sm_90 chip copies as without it.
    """
    import numpy as np

    if not elemtype.startswith("tf32"):
        return data
    bits = tf32(np.ascontiguousarray(data).view("<u4"))
    return bits.astype("<u4", copy=False).view(np.uint8)


def tf32(bits: Words) -> Words:
    """f32 patterns rounded to the 10 mantissa bits of tf32, to nearest even; every NaN becomes 0x7FFFE000.

    The documents leave the rounding open; this is what an sm_90 chip does.
    """
    import numpy as np

    magnitude = bits & np.uint32(0x7FFFFFFF)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    rounded = (bits + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
    return np.where(magnitude > np.uint32(0x7F800000), np.uint32(0x7FFFE000), rounded)
