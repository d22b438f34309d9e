"""A slot of a ring that is filled again without a wait: those who use it arrive on an mbarrier that nobody waits for.

Who waits for a copy frees its slot by an arrival. If the thread that fills the slot does not wait for that, two copies
race, or a read with the copy before it or behind it: one wait is missing for all of these.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.repeated_phases import is_mbarrier_at
from mcheck.answers.advice.unheard_arrivals import is_unheard
from mcheck.base.phrase import say
from mcheck.findings.fix import Await, Fix
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def suggest_wait_before_refill(g: ExecutionGraph) -> Fix | None:
    """The wait before a copy that fills bytes again, for the arrivals of those who wait for that copy.

    ``None`` if the issuing thread waits for such an arrival since it filled them last, or others wait, perhaps for it.
    """
    copy = g.new if _is_fill(g.new) else g.old
    bar, since = ops.mbarrier_of(copy.op), _last_fill(g, copy)
    if not copy.asynchronous or not isinstance(bar, Const) or since is None:
        return None
    between = (e.op for e in g.own_steps(copy.agent) if since < e.step < copy.step)
    others = (op for agent in g.agents if agent.index != copy.agent for op in agent.code)
    heard = [*_waits(between), *_waits(others)]
    freed = [op for op in _arrivals_of_users(g, copy.agent, bar.value) if not _is_heard(op, heard)]
    if len({op.address for op in freed}) != 1 or not isinstance(at := freed[0].address, Const):
        return None
    arrival, refill = site_of(freed[0]), site_of(copy.op)
    nobody = "nobody waits for it" if is_unheard(g, at.value) else "no wait for it since the last fill"
    wait = Await(signal=arrival, before=refill, nobody=True)
    return Fix((wait,), why=say("{}, and {} fills the slot again", nobody, refill))


def _is_fill(access: GraphAccess) -> bool:
    return access.asynchronous and access.write


def _last_fill(g: ExecutionGraph, copy: GraphAccess) -> int | None:
    """The step at which the thread that issues a copy issued one with the same destination before."""
    into = _destination(copy.op)
    before = (e for e in g.own_steps(copy.agent) if e.step < copy.step)
    return max((e.step for e in before if into is not None and _destination(e.op) == into), default=None)


def _destination(op: Op) -> object:
    """The address that a copy fills."""
    address = getattr(op, op.facets.writes[0], None) if op.facets.copies and op.facets.writes else None
    return address if isinstance(address, Const) else None


def _waits(code: Iterator[Op]) -> Iterator[ops.MbarrierWait]:
    performed = map(ops.performed_operation, code)
    return (op for op in performed if isinstance(op, ops.MbarrierWait))


def _is_heard(arrival: ops.MbarrierArrive, waits: list[ops.MbarrierWait]) -> bool:
    """Whether one of the waits is for the mbarrier of an arrival, or may be."""
    at = arrival.address
    return not isinstance(at, Const) or any(
        not isinstance(op.address, Const) or is_mbarrier_at(op.address, at.value) for op in waits
    )


def _arrivals_of_users(g: ExecutionGraph, issuer: int, bar: int) -> Iterator[ops.MbarrierArrive]:
    """The first arrival, without bytes, of each other thread of its CTA that has waited for the copy's mbarrier."""
    for agent in g.agents:
        if agent.index == issuer or not g.share_cta(agent.index, issuer):
            continue
        waited = False
        for op in map(ops.performed_operation, agent.code):
            waited = waited or (isinstance(op, ops.MbarrierWait) and is_mbarrier_at(op.address, bar))
            if waited and isinstance(op, ops.MbarrierArrive) and op.tx is None:
                yield op
                break
