"""Releases and acquires that do not synchronise because a scope excludes the other's thread, for RACE010 (8.5)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph
from mcheck.answers.advice.scope_mismatch import (
    NarrowScope,
    ScopedOperation,
    acquires,
    find_too_narrow,
    releases,
    scope_of,
)
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.ir.ops import Op

MAX_PAIRS = 2
"""The maximum number of release-acquire pairs in a message."""


def find_narrow_scopes(g: ExecutionGraph) -> list[NarrowScope]:
    """The releases to the later access's thread whose scope excludes one of the two threads, else those to another one
    of its CTA that it knows of; at most ``MAX_PAIRS``.
    """
    known = dict.fromkeys(e.agent for e in g.steps if e.signal < 0 and g.is_known(e))
    same = [a for a in known if a != g.new.agent and g.share_cta(a, g.new.agent)]
    readers = [g.new.agent, *(() if g.share_cta(g.old.agent, g.new.agent) else same)]
    return next(filter(None, (_find_narrow_scopes_to(g, reader) for reader in readers)), [])


def _find_narrow_scopes_to(g: ExecutionGraph, reader: int) -> list[NarrowScope]:
    theirs = [e.op for e in g.own_steps(reader, g.old.position)]
    others = [e for e in g.steps[g.old.position :] if e.agent != reader and e.signal < 0]
    blocked = g.agents[reader].blocked_at
    if blocked is not None:  # what it waits for in vain is no step
        theirs.append(blocked)
    place = g.place(reader)
    takes = [ScopedOperation(op, place) for op in theirs if acquires(op)]
    gives = [ScopedOperation(e.op, g.place(e.agent)) for e in others if releases(e.op)]
    pairs = [(give, take) for take in reversed(takes) for give in gives if _may_synchronise(give.op, take.op)]
    reads = [ScopedOperation(op, place) for op in theirs if isinstance(ops.performed_operation(op), _OBSERVING)]
    writes = [ScopedOperation(e.op, g.place(e.agent)) for e in others if isinstance(e.op, _OBSERVED)]
    pairs += [(w, r) for r in reversed(reads) for w in writes if takes and gives and _may_observe(w.op, r.op)]
    return find_too_narrow(pairs)[:MAX_PAIRS]


_OBSERVED = ops.ScalarWrite | ops.MbarrierArrive
_OBSERVING = ops.ScalarRead | ops.MbarrierWait


def _may_observe(write: Op, read: Op) -> bool:
    """Whether a strong operation may observe what another one has done to a word or an mbarrier (8.9.2)."""
    awaited = isinstance(ops.performed_operation(read), ops.MbarrierWait)
    if awaited is not isinstance(write, ops.MbarrierArrive) or scope_of(write) is None or scope_of(read) is None:
        return False
    return _distance(write, read) == 0


def _may_synchronise(release: Op, acquire: Op) -> bool:
    """Whether an acquire may observe a release: an arrive and a wait, two accesses to memory, or fences."""
    kinds = isinstance(release, ops.MbarrierArrive), isinstance(ops.performed_operation(acquire), ops.MbarrierWait)
    if all(kinds):
        return not _distance(release, acquire)
    return not any(kinds) or isinstance(release, ops.Fence) or isinstance(acquire, ops.Fence)


def _distance(one: Op, other: Op) -> int | None:
    """The distance of the objects that two operations access, by their constant addresses; an mbarrier is the same one
    through each window. ``None`` if it is not known.
    """
    a, b = (getattr(ops.performed_operation(op), "address", None) for op in (one, other))
    if not isinstance(a, Const) or not isinstance(b, Const):
        return None
    apart = a.value - b.value
    return apart % SHARED_WINDOW if isinstance(one, ops.MbarrierArrive) else apart
