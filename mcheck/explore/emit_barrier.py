"""Barriers of a CTA, of a cluster and of a warp: what they add to a thread's path (PTX ISA 9.0 section 9.7.13).

Who meets whom is for ``mcheck.explore.barriers``.
"""

from __future__ import annotations

from mcheck.explore.emit import Emitter, handles
from mcheck.explore.state import State
from mcheck.graph.event import BarrierStep
from mcheck.graph.terms import Term
from mcheck.program import ops
from mcheck.program.ops import Op


@handles(ops.Barrier)
def _barrier(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Barrier)
    cta = e.thread.place.cta.number
    number, count = e.maybe(op.barrier, state), e.maybe(op.count, state)
    state.effects += 1
    if e.semantics.static_barriers:
        static = op.instance if op.instance is not None else -1
        step = BarrierStep(("static", cta, static, number), op.kind, count, static, op.aligned, id(op))
        blocked = state.fork()
        blocked.ended = "stuck"
        e.event(blocked, op, ("BLOCKED",), barrier=step)
        e.event(state, op, ("F", "B", "BARRIVE") if op.kind == "arrive" else ("F", "B"), barrier=step)
        state.order += 1
        return [state, blocked]
    number = op.instance if number is None and op.instance is not None else number
    if op.instance is None:
        if number is None or not 0 <= number <= 15:
            raise e.stop("UB302", f"barrier {number} is not one of 0 to 15", op)
        if count is not None and (count <= 0 or count % 32):
            raise e.stop("UB301", f"{count} threads are not a positive multiple of the warp size", op)
    where = (op.span.line, op.span.column) if op.span is not None else (0, 0)
    key = ("bar", cta, number) if op.instance is None else ("inst", cta, op.instance, number)
    return _rendezvous(
        e, op, state, BarrierStep(key, op.kind, count, None, op.aligned, id(op), where), op.kind != "arrive"
    )


def _rendezvous(
    e: Emitter, op: Op, state: State, step: BarrierStep, waits: bool, tags: tuple[str, ...] = ()
) -> list[State]:
    """Arrival and resumption are two events, so that a circle of waiting barriers is a cycle."""
    src = getattr(op, "src", None)
    value: Term = e.term(src, state) if src is not None else 0
    e.event(state, op, ("B", "BARRIVE", *tags), barrier=step, value=value)
    state.order += 1
    if waits:
        blocked = state.fork()
        blocked.ended = "stuck"
        e.event(blocked, op, ("BLOCKED",), barrier=step)
        wait = e.event(state, op, ("B", "BWAIT", *tags), barrier=step)
        state.order += 1
        state.ctrl |= {wait.uid}
        e.set_register(state, getattr(op, "dst", None), ("e", wait.uid))
        return [state, blocked]
    return [state]


@handles(ops.ClusterBarrier)
def _cluster_barrier(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.ClusterBarrier)
    cta = e.thread.place.cta
    step = BarrierStep(("cluster", cta.gpu, cta.cluster), op.kind, None, None, op.aligned)
    state.effects += 1
    if op.kind == "arrive":
        if state.cluster_arrived:
            raise e.stop("UB306", "a thread arrives twice at the cluster barrier without waiting", op)
        state.cluster_arrived = True
        tag = "REL" if op.sem == "release" else "RLX"
        e.event(state, op, ("B", "BARRIVE", "CLUSTERBAR", tag), barrier=step, scope="cluster")
        state.order += 1
        return [state]
    if not state.cluster_arrived:
        raise e.stop("UB306", "a thread waits at the cluster barrier without having arrived", op)
    state.cluster_arrived = False
    blocked = state.fork()
    blocked.ended = "stuck"
    e.event(blocked, op, ("BLOCKED",), barrier=step)
    wait = e.event(state, op, ("B", "BWAIT", "CLUSTERBAR", "ACQ"), barrier=step, scope="cluster")
    state.order += 1
    state.ctrl |= {wait.uid}
    return [state, blocked]


@handles(ops.WarpSync)
def _warp_sync(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.WarpSync)
    place = e.thread.place
    mask = e.number(op.mask, state) & 0xFFFFFFFF
    if not mask >> place.lane & 1:
        raise e.stop("UB109", "the member mask of bar.warp.sync leaves out the executing lane", op)
    state.effects += 1
    step = BarrierStep(("warp", place.cta.number, place.warp, mask), "sync")
    return _rendezvous(e, op, state, step, True)
