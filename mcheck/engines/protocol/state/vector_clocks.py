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


def scopes_are_mutual(a_scope: str, a: tuple[int, int, int], b_scope: str, b: tuple[int, int, int]) -> bool:
    """Whether two scopes include each other's threads, which are at (gpu, cluster, cta) ``a`` and ``b``."""
    return all(_includes(scope, a, b) for scope in (a_scope, b_scope))


def _includes(scope: str, a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    match scope:
        case "cta":
            return a == b
        case "cluster":
            return a[:2] == b[:2]
        case "gpu":
            return a[0] == b[0]
    return True
