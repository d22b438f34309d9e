"""Remedies that were tried, in place of those that are read off the accesses alone."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.kernel import met, signalled, taken_away, tensor_waits, tried
from mcheck.kernel.machine import Machine
from mcheck.kernel.objects import Mbarrier, Rendezvous, Word
from mcheck.kernel.problems import Problem
from mcheck.kernel.trace import Entry
from mcheck.kernel.tried import Mends

LONG = 6_000
"""Steps of an execution from which on nothing is tried."""


Way = Callable[[Machine, Entry, Entry, Mends], str]
_UNORDERED = (met.passed_by_others, tried.fences, met.barrier, tensor_waits.allocated)
WAYS: dict[str, tuple[Way, ...]] = {
    "RACE001": _UNORDERED,
    "RACE002": _UNORDERED,
    "RACE003": (tensor_waits.waited, met.barrier, tensor_waits.allocated),
}
"""What is tried for two accesses that race, one after the other."""


def advice(m: Machine, problem: Problem, mends: Mends) -> str:
    """What mends a problem, if something that was tried does; empty otherwise."""
    if len(m.trace) > LONG:
        return ""
    if problem.code.startswith("DEAD"):
        return _of_a_deadlock(m, mends)
    ends = tried.ends(m, problem)
    if ends is None:
        return ""
    ways = WAYS.get(problem.code, ())
    found = next(filter(None, (way(m, *ends, mends) for way in ways)), "")
    if found or not ways:
        return found
    return signalled.count(m, [b for b in m.mbarriers.values() if b.began is not None], mends)


def _of_a_deadlock(m: Machine, mends: Mends) -> str:
    """What keeps threads from waiting for ever, if it is one thing alone."""
    stuck = [a for a in m.agents if a.status in ("blocked", "standing")]
    said = [taken_away.kept(m, a, a.where, mends) for a in stuck if isinstance(a.where, Word)]
    said += [met.twice(m, a.where) for a in stuck if isinstance(a.where, Rendezvous)]
    bars = {a.where.address: a.where for a in stuck if isinstance(a.where, Mbarrier)}
    fixed = (signalled.count(m, [bar], mends) or signalled.commit(m, bar, mends) for bar in bars.values())
    said.append(next(filter(None, fixed), ""))
    return " ".join(dict.fromkeys(filter(None, said)))
