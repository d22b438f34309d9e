"""Remedies that were tried, in place of those that are read off the accesses alone."""

from __future__ import annotations

from mcheck.kernel import met, tried
from mcheck.kernel.machine import Machine
from mcheck.kernel.problems import Problem
from mcheck.kernel.tried import Mends

LONG = 6_000
"""Steps of an execution from which on nothing is tried."""


def advice(m: Machine, problem: Problem, mends: Mends) -> str:
    """What mends a problem, if something that was tried does; empty otherwise."""
    ends = tried.ends(m, problem)
    if len(m.trace) > LONG or ends is None:
        return ""
    old, new = ends
    match problem.code:
        case "RACE001" | "RACE002":
            return met.passed_by_others(m, old, new, mends) or tried.fences(m, old, new, mends) or met.barrier(m, old, new, mends)
        case "RACE003":
            return met.barrier(m, old, new, mends)
    return ""
