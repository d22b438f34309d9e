"""A hand-over whose wait is missing: threads arrive on an mbarrier behind an access, and nobody waits for it."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, site_of
from mcheck.answers.advice.repeated_phases import is_mbarrier_at
from mcheck.base.errors import Span
from mcheck.base.phrase import Site
from mcheck.findings.fix import Await, Fix
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def suggest_wait_for_arrival(g: ExecutionGraph, access: GraphAccess, before: Site) -> Fix | None:
    """The wait ``before`` a statement for the only arrival behind an access, in the code of its CTA, that nobody waits
    for; ``None`` if there is none, or more than one statement makes such arrivals.
    """
    unheard = [by_span for address, by_span in _arrivals_behind(g, access).items() if is_unheard(g, address)]
    found = {span: op for by_span in unheard for span, op in by_span.items()}
    if len(found) != 1:
        return None
    (arrival,) = found.values()
    wait = Await(signal=site_of(arrival), before=before, nobody=True)
    return Fix((wait,), why=("nobody waits for it",))


def is_unheard(g: ExecutionGraph, address: int) -> bool:
    """Whether the code of no thread waits for the mbarrier at an address."""
    code = (ops.performed_operation(op) for agent in g.agents for op in agent.code)
    waits = [ops.mbarrier_of(op) for op in code if isinstance(op, ops.MbarrierWait)]
    return all(isinstance(bar, Const) and not is_mbarrier_at(bar, address) for bar in waits)


def _arrivals_behind(g: ExecutionGraph, access: GraphAccess) -> dict[int, dict[Span | None, Op]]:
    """The mbarriers that threads of the access's CTA arrive on after its statement, without bytes, and where: long
    loops arrive on few mbarriers, in few statements.
    """
    found: dict[int, dict[Span | None, Op]] = {}
    for agent in g.agents:
        if not g.share_cta(agent.index, access.agent):
            continue
        behind = False
        for op in agent.code:
            behind = behind or op.span == access.op.span
            inner = ops.performed_operation(op)
            if (
                behind
                and isinstance(inner, ops.MbarrierArrive)
                and inner.tx is None
                and isinstance(inner.address, Const)
            ):
                found.setdefault(inner.address.value, {})[op.span] = op
    return found
