"""Vector clocks: the order of steps in time, with a component per agent and, per mbarrier, its phases and lifetime.

This is the order in which the steps of an execution have to come, whatever the model makes of it: steps that could come
in another order are run in that order too. Vectors are immutable.
"""

from __future__ import annotations

Vector = list[int]


def join_clocks(a: Vector, b: Vector) -> Vector:
    """The component-wise maximum; one of the arguments itself where it is the maximum."""
    if a is b:
        return a
    return [x if x > y else y for x, y in zip(a, b, strict=True)]  # noqa: FURB136 - a call each takes thrice as long


def raise_clock(a: Vector, index: int, value: int) -> Vector:
    """``a`` with component ``index`` at least ``value``."""
    if a[index] >= value:
        return a
    new = a.copy()
    new[index] = value
    return new
