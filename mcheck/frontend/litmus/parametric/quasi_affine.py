"""Quasi-affine functions of the loop iteration: ``e(k + period) = e(k) + slope``."""

from __future__ import annotations

from fractions import Fraction
from math import floor, gcd, lcm

from mcheck.base.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class QuasiAffine:
    """A quasi-affine function of the iteration k and of the iteration count N: e(k + period, N) = e(k, N) + slope and
    e(k, N + period) = e(k, N) + along.

    ``value`` is that of a constant, ``objects`` are those into which it points, ``non_negative`` says that it is never
    negative, ``depends_on_count`` that N has a part in it. What is left of it without what grows, that is without
    ``(slope * k + along * N) / period``, lies between ``low`` and ``high``.
    """

    period: int = 1
    slope: int = 0
    growth_with_count: int = 0
    value: int | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    non_negative: bool = False
    depends_on_count: bool = False
    objects: frozenset[str] = frozenset()

    @property
    def grows(self) -> bool:
        """Whether it changes a period later, or with a period more of iterations."""
        return bool(self.slope or self.growth_with_count)

    @property
    def rate(self) -> Fraction:
        """Its average growth per iteration."""
        return Fraction(self.slope, self.period)

    @property
    def rate_with_count(self) -> Fraction:
        """Its average growth with the iteration count."""
        return Fraction(self.growth_with_count, self.period)


UNKNOWN = QuasiAffine()
"""An unknown value, the same in all iterations."""
TRUTH = QuasiAffine(low=Fraction(0), high=Fraction(1), non_negative=True)


def constant(value: int) -> QuasiAffine:
    """The function of a constant."""
    return QuasiAffine(value=value, low=Fraction(value), high=Fraction(value), non_negative=value >= 0)


def bounded_constant(low: int | None, high: int | None) -> QuasiAffine:
    """An unknown value within bounds, the same in all iterations."""
    return QuasiAffine(
        low=None if low is None else Fraction(low), high=None if high is None else Fraction(high),
        non_negative=low is not None and low >= 0,
    )  # fmt: skip


def add(a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
    """The sum."""
    period = lcm(a.period, b.period)
    mine, theirs = period // a.period, period // b.period
    return QuasiAffine(
        period, a.slope * mine + b.slope * theirs, a.growth_with_count * mine + b.growth_with_count * theirs,
        None if a.value is None or b.value is None else a.value + b.value,
        None if a.low is None or b.low is None else a.low + b.low,
        None if a.high is None or b.high is None else a.high + b.high,
        a.non_negative and b.non_negative, a.depends_on_count or b.depends_on_count, a.objects | b.objects,
    )  # fmt: skip


def multiply(a: QuasiAffine, by: int) -> QuasiAffine:
    """The product with a number."""
    low, high = (None if x is None else x * by for x in (a.low, a.high))
    if by < 0:
        low, high = high, low
    return replace(
        a, slope=a.slope * by, growth_with_count=a.growth_with_count * by,
        value=None if a.value is None else a.value * by, low=low, high=high,
        non_negative=a.non_negative and by >= 0,
    )  # fmt: skip


def subtract(a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
    """The difference, ``a - b``."""
    return add(a, multiply(b, -1))


def divide(a: QuasiAffine, by: int) -> QuasiAffine:
    """The quotient of a function that is never negative by a number."""
    often = _often(a, by)
    most = Fraction(by - 1, by)
    return replace(
        a, period=a.period * often, slope=a.slope * often // by, growth_with_count=a.growth_with_count * often // by,
        value=None if a.value is None else a.value // by,
        low=None if a.low is None else (Fraction(floor(a.low / by)) if not a.grows else a.low / by - most),
        high=None if a.high is None else a.high / by, non_negative=True,
    )  # fmt: skip


def remainder(a: QuasiAffine, by: int) -> QuasiAffine:
    """The remainder of a function that is never negative by a number."""
    return QuasiAffine(
        a.period * _often(a, by), value=None if a.value is None else a.value % by, low=Fraction(0),
        high=Fraction(by - 1), non_negative=True, depends_on_count=a.depends_on_count, objects=a.objects,
    )  # fmt: skip


def _often(a: QuasiAffine, by: int) -> int:
    """The number of periods after which it has grown by a multiple of a number."""
    return lcm(by // gcd(a.slope, by), by // gcd(a.growth_with_count, by))
