"""Scopes, ordered by width (PTX ISA 9.0 section 8.5)."""

from __future__ import annotations

from collections.abc import Hashable

from mcheck.ir.memory import Cta
from mcheck.ir.program import Program

WIDTH = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 3}


def width_of_program(program: Program) -> int:
    """The width of the narrowest scope that includes all threads of a program, whichever of them names it."""
    ctas = {t.place.cta for t in program.threads}
    if len(ctas) == 1:
        return WIDTH["cta"]
    if len({(c.gpu, c.cluster) for c in ctas}) == 1:
        return WIDTH["cluster"]
    return WIDTH["gpu"] if len({c.gpu for c in ctas}) == 1 else WIDTH["sys"]


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
