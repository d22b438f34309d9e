"""Exact addition and comparison on the bit patterns of f16, bf16, f32 and f64, in integer arithmetic.

Rounding is to nearest even. The PTX ISA does not promise the bits of a NaN result (sections 9.7.3 and 9.7.4 speak of a
canonical NaN for some types only); here they are those of an sm_90 chip: the canonical 0x7FFF and 0x7FFFFFFF, and
for f64 a NaN operand as it is, the second one first.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: bits of exponent and mantissa, and the NaN that an operation gives."""

    exponent: int
    mantissa: int
    nan: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def least(self) -> int:
        """The exponent of the last bit of a subnormal number: a pattern below 2**mantissa stands for it times that."""
        return 2 - (1 << (self.exponent - 1)) - self.mantissa


FORMATS: Final = MappingProxyType(
    {
        "f16": Format(5, 10, 0x7FFF),
        "bf16": Format(8, 7, 0x7FFF),
        "f32": Format(8, 23, 0x7FFFFFFF),
        "f64": Format(11, 52, 0xFFF8000000000000),
    }
)


def is_nan(form: Format, bits: int) -> bool:
    return bits & (form.sign - 1) > form.infinity


def flush(form: Format, bits: int) -> int:
    """A subnormal number becomes the zero of its sign."""
    return bits if bits & form.infinity else bits & form.sign


def add(form: Format, a: int, b: int) -> int:
    """a + b, rounded to nearest even; an exact zero sum of numbers of either sign is +0."""
    if is_nan(form, a) or is_nan(form, b):
        if form.bits < 64:
            return form.nan
        return b if is_nan(form, b) else a
    a_infinite, b_infinite = (x & (form.sign - 1) == form.infinity for x in (a, b))
    if a_infinite or b_infinite:
        if a_infinite and b_infinite and a != b:
            return form.nan
        return a if a_infinite else b
    total = _exact(form, a) + _exact(form, b)
    if total == 0:
        return a & b & form.sign
    return _rounded(form, total)


def less(form: Format, a: int, b: int) -> bool:
    """a < b for numbers that are no NaN, with -0 below +0."""
    return _key(form, a) < _key(form, b)


def smallest(form: Format, a: int, b: int) -> int:
    """min as ``min.f16`` has it (section 9.7.4): a NaN gives way to a number, -0 is below +0."""
    return _choose(form, a, b, less(form, a, b))


def largest(form: Format, a: int, b: int) -> int:
    """max as ``max.f16`` has it (section 9.7.4): a NaN gives way to a number, +0 is above -0."""
    return _choose(form, a, b, less(form, b, a))


def _choose(form: Format, a: int, b: int, first: bool) -> int:
    if is_nan(form, a):
        return form.nan if is_nan(form, b) else b
    return a if first or is_nan(form, b) else b


def _key(form: Format, bits: int) -> int:
    """Orders the patterns as the numbers they stand for."""
    return -1 - (bits & (form.sign - 1)) if bits & form.sign else bits


def _exact(form: Format, bits: int) -> int:
    """The number in units of 2**least, so that every finite number is an integer."""
    exponent = (bits & form.infinity) >> form.mantissa
    fraction = bits & ((1 << form.mantissa) - 1)
    units = fraction if exponent == 0 else (fraction | 1 << form.mantissa) << (exponent - 1)
    return -units if bits & form.sign else units


def _rounded(form: Format, units: int) -> int:
    """The pattern nearest to a number that is given in units of 2**least; ties go to the even mantissa."""
    sign = form.sign if units < 0 else 0
    units = abs(units)
    shift = max(0, units.bit_length() - form.mantissa - 1)
    kept, dropped = units >> shift, units & ((1 << shift) - 1)
    half = 1 << shift >> 1
    if dropped > half or (dropped == half and shift and kept & 1):
        kept += 1
    # The leading bit of a normal number carries into the exponent field, and so does a mantissa that rounds up to 2.
    return sign | min(kept + (shift << form.mantissa), form.infinity)
