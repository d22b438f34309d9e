"""Functions of the round that are alike in every period: ``e(k + period) = e(k) + slope``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, gcd, lcm

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class QuasiAffine:
    """A function of the round k, and of the number N of them: e(k + period, N) = e(k, N) + slope and
    e(k, N + period) = e(k, N) + along.

    ``value`` is that of a constant, ``objects`` are those into which it points, ``natural`` says that it is never
    negative, ``counts`` that N has a part in it. What is left of it without what grows, that is without
    ``(slope * k + along * N) / period``, lies between ``low`` and ``high``.
    """

    period: int = 1
    slope: int = 0
    along: int = 0
    value: int | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    natural: bool = False
    counts: bool = False
    objects: frozenset[str] = frozenset()

    @property
    def grows(self) -> bool:
        """Whether it is not the same a period later, or with so many rounds more."""
        return bool(self.slope or self.along)

    @property
    def rate(self) -> Fraction:
        """What it grows by in a round."""
        return Fraction(self.slope, self.period)

    @property
    def rate_along(self) -> Fraction:
        """What it grows by with the number of rounds."""
        return Fraction(self.along, self.period)


UNKNOWN = QuasiAffine()
"""A value that is the same in all rounds."""
TRUTH = QuasiAffine(low=Fraction(0), high=Fraction(1), natural=True)


def constant(value: int) -> QuasiAffine:
    """A number."""
    return QuasiAffine(value=value, low=Fraction(value), high=Fraction(value), natural=value >= 0)


def bounded_constant(low: int | None, high: int | None) -> QuasiAffine:
    """A value that is the same in all rounds, with what is known of it."""
    return QuasiAffine(
        low=None if low is None else Fraction(low), high=None if high is None else Fraction(high),
        natural=low is not None and low >= 0,
    )  # fmt: skip


def total(a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
    """The sum."""
    period = lcm(a.period, b.period)
    mine, theirs = period // a.period, period // b.period
    return QuasiAffine(
        period, a.slope * mine + b.slope * theirs, a.along * mine + b.along * theirs,
        None if a.value is None or b.value is None else a.value + b.value,
        None if a.low is None or b.low is None else a.low + b.low,
        None if a.high is None or b.high is None else a.high + b.high,
        a.natural and b.natural, a.counts or b.counts, a.objects | b.objects,
    )  # fmt: skip


def multiply(a: QuasiAffine, by: int) -> QuasiAffine:
    """The product with a number."""
    low, high = (None if x is None else x * by for x in (a.low, a.high))
    if by < 0:
        low, high = high, low
    return replace(
        a, slope=a.slope * by, along=a.along * by, value=None if a.value is None else a.value * by, low=low, high=high,
        natural=a.natural and by >= 0,
    )  # fmt: skip


def difference(a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
    """What ``a`` is above ``b``."""
    return total(a, multiply(b, -1))


def quotient(a: QuasiAffine, by: int) -> QuasiAffine:
    """What is never negative, divided by a number."""
    often = _often(a, by)
    most = Fraction(by - 1, by)
    return replace(
        a, period=a.period * often, slope=a.slope * often // by, along=a.along * often // by,
        value=None if a.value is None else a.value // by,
        low=None if a.low is None else (Fraction(floor(a.low / by)) if not a.grows else a.low / by - most),
        high=None if a.high is None else a.high / by, natural=True,
    )  # fmt: skip


def remainder(a: QuasiAffine, by: int) -> QuasiAffine:
    """What is left of what is never negative, divided by a number."""
    return QuasiAffine(
        a.period * _often(a, by), value=None if a.value is None else a.value % by, low=Fraction(0),
        high=Fraction(by - 1), natural=True, counts=a.counts, objects=a.objects,
    )  # fmt: skip


def _often(a: QuasiAffine, by: int) -> int:
    """After how many periods it has grown by multiples of a number."""
    return lcm(by // gcd(a.slope, by), by // gcd(a.along, by))
