"""Events of the barriers of a CTA, of a cluster and of a warp (PTX ISA 9.0 section 9.7.13).

Who meets whom is for ``mcheck.events.choices.barrier_generations``.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.events.emit import Emitter, handles
from mcheck.events.event import BarrierStep
from mcheck.events.thread_state import State
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics.lane_terms import pack_operands, unpack_result
from mcheck.semantics.terms import Term, typed
from mcheck.semantics.warp_collectives import elect, result


@handles(ops.Barrier)
def _barrier(e: Emitter, op: ops.Barrier, state: State) -> list[State]:
    cta = e.thread.place.cta.number
    number, count = e.effect_of(op, state).result, e.optional_number(op.count, state)
    state.effects += 1
    if e.semantics.static_barriers:
        static = op.instance if op.instance is not None else -1
        step = BarrierStep(("static", cta, static, number), op.kind, count, op.aligned, id(op))
        blocked = state.fork()
        blocked.ended = "stuck"
        e.event(blocked, op, (Tag.BLOCKED,), barrier=step)
        e.event(state, op, (Tag.F, Tag.B, Tag.BARRIVE) if op.kind == "arrive" else (Tag.F, Tag.B), barrier=step)
        state.order += 1
        return [state, blocked]
    where = (op.span.line, op.span.column) if op.span is not None else (0, 0)
    key = ("bar", cta, number) if op.instance is None else ("inst", cta, op.instance, number)
    return _rendezvous(e, op, state, BarrierStep(key, op.kind, count, op.aligned, id(op), where), op.kind != "arrive")


def _rendezvous(e: Emitter, op: Op, state: State, step: BarrierStep, waits: bool) -> list[State]:
    """Emit arrival and resumption as two events, so that barriers that wait for each other are a cycle."""
    src = getattr(op, "src", None)
    value: Term = e.term(src, state) if src is not None else 0
    e.event(state, op, (Tag.B, Tag.BARRIVE), barrier=step, value=value)
    state.order += 1
    if waits:
        blocked = state.fork()
        blocked.ended = "stuck"
        e.event(blocked, op, (Tag.BLOCKED,), barrier=step)
        wait = e.event(state, op, (Tag.B, Tag.BWAIT), barrier=step)
        state.order += 1
        state.ctrl |= {wait.uid}
        e.set_register(state, getattr(op, "dst", None), ("e", wait.uid))
        return [state, blocked]
    return [state]


@handles(ops.ClusterBarrier)
def _cluster_barrier(e: Emitter, op: ops.ClusterBarrier, state: State) -> list[State]:
    cta = e.thread.place.cta
    step = BarrierStep(("cluster", cta.gpu, cta.cluster), op.kind, None, op.aligned)
    state.effects += 1
    if op.kind == "arrive":
        if state.cluster_arrived:
            raise e.stop("UB306", "a thread arrives twice at the cluster barrier without waiting", op)
        state.cluster_arrived = True
        tag = Tag.REL if op.sem == "release" else Tag.RLX
        e.event(state, op, (Tag.B, Tag.BARRIVE, Tag.CLUSTERBAR, tag), barrier=step, scope="cluster")
        state.order += 1
        return [state]
    if not state.cluster_arrived:
        raise e.stop("UB306", "a thread waits at the cluster barrier without having arrived", op)
    state.cluster_arrived = False
    blocked = state.fork()
    blocked.ended = "stuck"
    e.event(blocked, op, (Tag.BLOCKED,), barrier=step)
    wait = e.event(state, op, (Tag.B, Tag.BWAIT, Tag.CLUSTERBAR, Tag.ACQ), barrier=step, scope="cluster")
    state.order += 1
    state.ctrl |= {wait.uid}
    return [state, blocked]


@handles(ops.WarpSync)
def _warp_sync(e: Emitter, op: ops.WarpSync, state: State) -> list[State]:
    place = e.thread.place
    mask = e.effect_of(op, state).result
    state.effects += 1
    step = BarrierStep(("warp", place.cta.number, place.warp, mask), "sync")
    return _rendezvous(e, op, state, step, True)


# --- the lanes of a mask wait for each other, without an order of memory ---------------------------------------------


@handles(ops.Collective)
def _collective(e: Emitter, op: ops.Collective, state: State) -> list[State]:
    """The lane's inputs go with its arrival; its departure returns the value and, above it, the predicate."""
    mask, place = e.effect_of(op, state).result, e.thread.place
    assert mask is not None
    lanes = frozenset(lane for lane in e.warp_lanes if mask >> lane & 1)
    brings = e.term(op.srcs[0], state) if op.srcs else 0
    own = tuple(e.term(x, state) for x in op.srcs[1:])
    if op.op == "elect":
        _set_results(e, op, state, *elect(mask, place.lane, lanes))
    if not e.meets or (lanes == {place.lane} and all(isinstance(x, int) for x in (brings, *own))):
        if op.op != "elect":
            _alone(e, op, state, mask, brings, own)
        return [state]
    step = BarrierStep(("lanes", *place.own_warp, mask, op.op, op.type), "sync")
    state.effects += 1
    e.event(state, op, (Tag.MEET,), barrier=step, value=brings)
    state.order += 1
    blocked = state.fork()
    blocked.ended = "stuck"
    e.event(blocked, op, (Tag.BLOCKED,), barrier=step)
    met = e.event(state, op, (Tag.MET,), barrier=step, value=pack_operands(own))
    state.order += 1
    state.ctrl |= {met.uid}
    if op.op != "elect":
        value, predicate = unpack_result(("e", met.uid))
        _set_results(e, op, state, typed(op.type, value), predicate)
    return [state, blocked]


def _alone(e: Emitter, op: ops.Collective, state: State, mask: int, brings: Term, own: tuple[Term, ...]) -> None:
    """The results of a lane that is alone in its mask; if other lanes are not modelled, they are unknown."""
    value, predicate = None, None
    if e.meets and isinstance(brings, int):
        known = tuple(x for x in own if isinstance(x, int))
        value, predicate = result(op.op, op.type, mask, e.thread.place.lane, {e.thread.place.lane: brings}, known)
    unknown: Term = ("?", (e.thread.index, "lanes", state.instruction))
    _set_results(e, op, state, unknown if value is None else value, unknown if predicate is None else predicate)


def _set_results(e: Emitter, op: ops.Collective, state: State, value: Term, predicate: Term) -> None:
    e.set_register(state, op.dsts[0], value)
    e.set_register(state, op.dsts[1], predicate)
