"""What a barrier with a count lacks when threads wait at it forever (PTX ISA 9.0 section 9.7.13.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, Sites, join, say
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.thread_names import format_threads
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.findings.fix import Fix, advise
from mcheck.ir import ops
from mcheck.ir.expr import Const

WARP = 32


def suggest_barrier_count(m: Machine, at: BarrierState) -> Fix:
    """How many threads the barrier expects and who comes, at which lines; who arrives at another one instead, or has
    still to come.
    """
    came, lacks = WARP * len(at.warps), (at.count or 0) - WARP * len(at.warps)
    arrived = [*at.arrived.values(), *(done for more in at.repeated_arrivals.values() for done in more)]
    who = format_threads(m, [m.agents[k] for k in sorted(at.arrived)])
    number = str(at.key[-1])
    here = say("{} come: {} at {}", str(came), who, _sites(arrived))
    first = say("Barrier {} expects {} threads, and {}", number, str(at.count), here)
    elsewhere = tuple(_explain_elsewhere(m, at))
    if elsewhere:
        return advise("{}; {}", first, join(elsewhere, "; ", "; "))
    more = say("let {} more threads come to it, by bar.arrive or bar.sync, or count {} there", str(lacks), str(came))
    return advise("{}; {}", first, more)


def _sites(arrived: Iterable[SyncOperation]) -> Sites:
    found = {site_of(done.event.op) for done in arrived}
    return Sites(tuple(sorted(found, key=lambda site: site.line)), " and ")


def _only_arrives(done: SyncOperation) -> bool:
    return isinstance(done.event.op, ops.Barrier) and done.event.op.kind == "arrive"


def _explain_elsewhere(m: Machine, at: BarrierState) -> Iterator[Phrase]:
    """Threads that arrived at another barrier of the CTA, where nobody waits; else one that has still to come."""
    counted = [(other.key, tuple(other.arrived.values())) for other in m.barriers.values() if other.count is not None]
    for key, arrivals in (*m.completed_barriers, *counted):
        alone = arrivals and all(_only_arrives(done) for done in arrivals)
        if alone and key != at.key and key[:-1] == at.key[:-1]:
            who = format_threads(m, [m.agents[k] for k in sorted({done.agent for done in arrivals})])
            yield say("{} came to barrier {}, at {}, where nobody waits", who, str(key[-1]), _sites(arrivals))
            return
    cta = m.warp_of(m.agents[min(at.arrived)])[0]
    for agent in m.agents:
        if agent.index in at.arrived or agent.status not in ("blocked", "standing") or m.warp_of(agent)[0] != cta:
            continue
        ahead = (op for op in agent.code[agent.pc + 1 :] if isinstance(op, ops.Barrier))
        op = next((op for op in ahead if isinstance(op.barrier, Const) and op.barrier.value == at.key[-1]), None)
        if op is not None:
            who, stuck = format_threads(m, [agent]), site_of(agent.code[agent.pc])
            yield say("{} has still to come, at {}, and is stuck at {}", who, site_of(op), stuck)
            return
