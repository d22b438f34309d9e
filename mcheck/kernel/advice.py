"""Remedies that were tried, in place of those that are read off the accesses alone."""

from __future__ import annotations

from mcheck.kernel import tried
from mcheck.kernel.machine import Machine
from mcheck.kernel.problems import Problem
from mcheck.kernel.tried import Mends

LONG = 6_000
"""Steps of an execution from which on nothing is tried."""


def advice(m: Machine, problem: Problem, mends: Mends) -> str:
    """What mends a problem, if something that was tried does; empty otherwise."""
    if len(m.trace) > LONG:
        return ""
    if problem.code in ("RACE001", "RACE002"):
        return tried.fences(m, problem, mends)
    return ""
