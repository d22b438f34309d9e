"""Fixes for the lifetime of an mbarrier object: what orders its init before its uses, and repeated inits."""

from __future__ import annotations

from mcheck.answers.advice.graph import line_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.ir import ops
from mcheck.ir.ops import Op


def suggest_publication(m: Machine, agent: Agent, bar: Mbarrier, op: Op) -> str:
    """What orders the initialisation of an mbarrier before an operation of another thread."""
    began = bar.initialisation
    if began is None:
        return ""
    owner = m.agents[began.agent]
    line = line_of(began.event.op)
    if owner.placement[2] != agent.placement[2]:
        barrier = "barrier.cluster.arrive and barrier.cluster.wait"
        fences = [(a, fence) for a in m.agents for fence in a.code if _of_inits(fence)]
        there = next((fence for a, fence in fences if a is owner and line_of(fence) > line), None)
        if there is not None:
            return f"Let {barrier} stand in both CTAs between line {line_of(there)} and line {line_of(op)}."
        fence = f"Execute fence.mbarrier_init.release.cluster after line {line}, in the thread that initialises,"
        others = [f"The one at line {line_of(f)} is for the inits of its own thread, {m.name(a)}." for a, f in fences]
        return " ".join([f"{fence} and {barrier} between that and line {line_of(op)}.", *others[:1]])
    return f"Put a barrier such as bar.sync 0 between the mbarrier.init at line {line} and line {line_of(op)}."


def _of_inits(op: Op) -> bool:
    return isinstance(op, ops.Fence) and op.restrict == "mbarrier_init"


def suggest_single_init(bar: Mbarrier, op: Op) -> str:
    """The fix for an init of an object that exists."""
    if bar.initialisation is None or bar.initialisation.event.op.span == op.span:
        return f"Let one thread execute line {line_of(op)}, once, or mbarrier.inval before it is executed again."
    first = line_of(bar.initialisation.event.op)
    return (
        f"Execute mbarrier.inval before line {line_of(op)}, when nothing on the object of line {first} is outstanding."
    )
