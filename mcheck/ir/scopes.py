"""Scopes, ordered by width (PTX ISA 9.0 section 8.5)."""

from __future__ import annotations

from collections.abc import Hashable

from mcheck.ir import ops
from mcheck.ir.memory import Cta
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

SCOPES = ("cta", "cluster", "gpu", "sys")
"""The narrowest first."""
WIDTH = {scope: width for width, scope in enumerate(SCOPES)}
GRID_SCOPES = ("gpu", "sys")
"""The scopes at which clusters of a grid are morally strong (8.7)."""
NARROW_SCOPES = ("cta", "cluster")
"""Those at which they are not."""


def width_of_program(program: Program) -> int:
    """The width of the narrowest scope that includes all threads of a program, whichever of them names it."""
    ctas = {t.place.cta for t in program.threads}
    if len(ctas) == 1:
        return WIDTH["cta"]
    if len({(c.gpu, c.cluster) for c in ctas}) == 1:
        return WIDTH["cluster"]
    return WIDTH["gpu"] if len({c.gpu for c in ctas}) == 1 else WIDTH["sys"]


def is_grid_fence(op: Op) -> bool:
    """Whether an operation is a fence that releases and acquires between clusters of a grid."""
    return isinstance(op, ops.Fence) and op.restrict is None and op.sem in ("acq_rel", "sc") and op.scope in GRID_SCOPES


def scope_instance(cta: Cta, scope: str) -> Hashable:
    """The scope instance of a CTA's threads: a key that is equal for all threads in it, and for no other."""
    match scope:
        case "cta":
            return cta.number
        case "cluster":
            return cta.gpu, cta.cluster
        case "gpu":
            return cta.gpu
    return True


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
