"""Fixes that were verified by a run, which replace those derived from the accesses alone."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search import (
    barrier_fixes,
    lock_cycles,
    mbarrier_fixes,
    overwritten_values,
    parity_fixes,
    tensor_memory_waits,
    trials,
)
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.operations.deadlocks import has_missed_phase, is_cut
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import BarrierState, Mbarrier, Word
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.findings.fix import Change, Fixes, HandOver, Property, Repeat, all_steps

MAX_STEPS = 6_000
"""Length of an execution from which on no fix is tried."""


MISCOUNTED = frozenset({"UB205", "UB212"})
"""Codes of arrivals that do not fit the count of their mbarrier."""
Strategy = Callable[[Machine, TraceEntry, TraceEntry, IsFix], Fixes]
_UNORDERED = (
    barrier_fixes.explain_foreign_completion,
    trials.suggest_fences_between,
    barrier_fixes.suggest_barrier,
    tensor_memory_waits.suggest_alloc_barrier,
)
STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "RACE001": _UNORDERED,
    "RACE002": _UNORDERED,
    "RACE003": (
        tensor_memory_waits.suggest_wait,
        barrier_fixes.suggest_barrier,
        tensor_memory_waits.suggest_alloc_barrier,
    ),
}
"""Strategies to try for two accesses that race, in order."""


def find_fix(m: Machine, problem: Problem, is_fix: IsFix) -> Fixes:
    """Return the fixes of a problem, if one of those tried fixes it; none otherwise, nor where all threads come to a
    wait behind which a barrier is known to be missing. Of a count that could not be tried it says what speaks for it.
    """
    too_long = len(m.trace) > MAX_STEPS
    if problem.code in MISCOUNTED:
        places = {(a.object, a.bytes[0]) for a in problem.accesses}
        misused = [b for b in m.mbarriers.values() if b.initialisation is not None and _place(m, b) in places]
        tried = () if too_long else mbarrier_fixes.suggest_count(m, misused, is_fix)
        return tried or mbarrier_fixes.explain_low_count(m, misused)
    if too_long:
        return ()
    if problem.code.startswith("DEAD"):
        return _find_deadlock_fix(m, is_fix)
    if any(isinstance(step, HandOver) and step.everyone for fix in problem.fixes for step in fix.steps):
        return ()
    ends = trials.find_access_steps(m, problem)
    if ends is None or any(isinstance(step, Repeat) for step in all_steps(is_fix.finding.fixes)):
        return ()
    ways = STRATEGIES.get(problem.code, ())
    found = next(filter(None, (way(m, *ends, is_fix) for way in ways)), ())
    if found or not ways:
        return found
    if any(isinstance(step, Change) and step.what is Property.PARITY for fix in problem.fixes for step in fix.steps):
        return ()
    bars = [b for b in m.mbarriers.values() if b.initialisation is not None]
    return mbarrier_fixes.suggest_count(m, bars, is_fix) or parity_fixes.suggest_alternation(m, is_fix)


def _place(m: Machine, bar: Mbarrier) -> tuple[str, int]:
    """The object that an mbarrier is in, and its first byte there."""
    instance = m.program.memory.find(bar.address)
    return ("", 0) if instance is None else (instance.label, bar.address - instance.base)


def _find_deadlock_fix(m: Machine, is_fix: IsFix) -> Fixes:
    """Return the fixes of a deadlock, if a single change fixes it."""
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    one_order = lock_cycles.suggest_one_order(m, stuck)
    said = (
        [one_order]
        if one_order
        else [
            overwritten_values.suggest_preserving(m, a, a.blocked_on, is_fix)
            for a in stuck
            if isinstance(a.blocked_on, Word)
        ]
    )
    said += [
        barrier_fixes.explain_double_arrival_at(m, a.blocked_on)
        for a in stuck
        if isinstance(a.blocked_on, BarrierState)
    ]
    known = not any(map(is_cut, stuck))  # else it is open what they signal
    waiting = [a for a in stuck if known and not has_missed_phase(m, a)]
    bars = {a.blocked_on.address: a.blocked_on for a in waiting if isinstance(a.blocked_on, Mbarrier)}
    fixed = (
        mbarrier_fixes.suggest_count(m, [bar], is_fix) or mbarrier_fixes.suggest_commit(m, bar, is_fix)
        for bar in bars.values()
    )
    said.append(next(filter(None, fixed), ()))
    return tuple(dict.fromkeys(fix for fixes in said for fix in fixes))
