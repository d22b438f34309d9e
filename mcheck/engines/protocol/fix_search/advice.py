"""Remedies that were tried, in place of those that are read off the accesses alone."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search import (
    barrier_fixes,
    mbarrier_fixes,
    overwritten_values,
    tensor_memory_waits,
    trials,
)
from mcheck.engines.protocol.fix_search.trials import Mends
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import BarrierState, Mbarrier, Word
from mcheck.engines.protocol.state.trace import TraceEntry

LONG = 6_000
"""Steps of an execution from which on nothing is tried."""


Way = Callable[[Machine, TraceEntry, TraceEntry, Mends], str]
_UNORDERED = (barrier_fixes.passed_by_others, trials.fences, barrier_fixes.barrier, tensor_memory_waits.allocated)
WAYS: dict[str, tuple[Way, ...]] = {
    "RACE001": _UNORDERED,
    "RACE002": _UNORDERED,
    "RACE003": (tensor_memory_waits.waited, barrier_fixes.barrier, tensor_memory_waits.allocated),
}
"""What is tried for two accesses that race, one after the other."""


def advice(m: Machine, problem: Problem, mends: Mends) -> str:
    """The fix of a problem, if one of those that were tried fixes it; empty otherwise."""
    if len(m.trace) > LONG:
        return ""
    if problem.code.startswith("DEAD"):
        return _of_a_deadlock(m, mends)
    ends = trials.ends(m, problem)
    if ends is None:
        return ""
    ways = WAYS.get(problem.code, ())
    found = next(filter(None, (way(m, *ends, mends) for way in ways)), "")
    if found or not ways:
        return found
    return mbarrier_fixes.count(m, [b for b in m.mbarriers.values() if b.initialisation is not None], mends)


def _of_a_deadlock(m: Machine, mends: Mends) -> str:
    """What keeps threads from waiting forever, if it is one thing alone."""
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    said = [overwritten_values.kept(m, a, a.blocked_on, mends) for a in stuck if isinstance(a.blocked_on, Word)]
    said += [barrier_fixes.twice(m, a.blocked_on) for a in stuck if isinstance(a.blocked_on, BarrierState)]
    bars = {a.blocked_on.address: a.blocked_on for a in stuck if isinstance(a.blocked_on, Mbarrier)}
    fixed = (mbarrier_fixes.count(m, [bar], mends) or mbarrier_fixes.commit(m, bar, mends) for bar in bars.values())
    said.append(next(filter(None, fixed), ""))
    return " ".join(dict.fromkeys(filter(None, said)))
