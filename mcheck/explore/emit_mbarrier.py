"""Events of the mbarrier instructions (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from mcheck.executor.mbarrier import MAX_COUNT
from mcheck.explore.emit import SEM_TAG, Emitter, handles, mbarrier_event
from mcheck.explore.state import State
from mcheck.graph.event import MbarrierStep
from mcheck.graph.terms import Term, reads_of
from mcheck.program import ops
from mcheck.program.ops import Op


def object_address(e: Emitter, op: Op, address: int, *, own_cta: bool) -> int:
    """The physical address of the mbarrier object at ``address``: 8 aligned bytes of shared memory (U4)."""
    instance = e.locate(address, 8, op, 8)
    if instance.object.space != "shared" or instance.cta is None:
        raise e.stop("UB204", "the mbarrier object is not in shared memory", op)
    here, there = e.thread.place.cta, instance.cta
    if own_cta and there != here:
        raise e.stop("UB204", "the mbarrier object is not in the shared memory of the executing CTA", op)
    if (here.gpu, here.cluster) != (there.gpu, there.cluster):
        raise e.stop("UB204", "the mbarrier object is in the shared memory of another cluster", op)
    return address


@handles(ops.MbarrierInit)
def _init(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierInit)
    address = object_address(e, op, e.address(op.address, state), own_cta=True)
    mbarrier_event(e, state, op, MbarrierStep(address, "init", count=e.number(op.count, state)), ("INIT",))
    return _done(state)


@handles(ops.MbarrierInval)
def _inval(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierInval)
    address = object_address(e, op, e.address(op.address, state), own_cta=True)
    mbarrier_event(e, state, op, MbarrierStep(address, "inval"), ("INVAL",))
    return _done(state)


def _done(state: State) -> list[State]:
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.MbarrierTx)
def _tx(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierTx)
    address = object_address(e, op, e.address(op.address, state), own_cta=op.space == "shared::cta")
    step = MbarrierStep(address, op.kind, tx=e.number(op.tx, state))
    tag = "EXPECT" if op.kind == "expect" else "SIGNAL"
    mbarrier_event(e, state, op, step, (tag, "RLX"), scope=op.scope)
    return _done(state)


@handles(ops.MbarrierArrive)
def _arrive(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierArrive)
    there = e.instance_at(e.address(op.address, state))
    if op.state is not None and there is not None and there.cta not in (None, e.thread.place.cta):
        raise e.stop("UB214", "an arrive on an mbarrier of another CTA returns no state", op)
    address = object_address(e, op, e.address(op.address, state), own_cta=op.space == "shared::cta")
    count = e.maybe(op.count, state)
    step = MbarrierStep(
        address,
        "drop" if op.drop else "arrive",
        count=1 if count is None else count,
        tx=e.maybe(op.tx, state),
        no_complete=op.no_complete,
    )
    event = mbarrier_event(e, state, op, step, ("ARRIVE", SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.state, ("e", event.uid))
    return _done(state)


@handles(ops.MbarrierWait)
def _wait(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierWait)
    address = object_address(e, op, e.address(op.address, state), own_cta=True)
    parity = e.maybe(op.parity, state)
    if parity is not None and parity not in (0, 1):
        raise e.stop("UB109", f"phase parity {parity} is neither 0 nor 1", op)
    token: Term | None = None if op.state is None else e.term(op.state, state)
    step = MbarrierStep(address, "wait", parity=parity, state=token, blocking=op.blocking)
    event = mbarrier_event(e, state, op, step, ("WAIT", SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.dst, ("e", event.uid))
    state.order += 1
    return [state]


@handles(ops.MbarrierPending)
def _pending(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierPending)
    token = e.term(op.state, state)
    by_uid = {ev.uid: ev for ev in state.events}
    sources = [by_uid[u].mbarrier for u in reads_of(token) if u in by_uid]
    if not sources or any(m is None or not m.no_complete for m in sources):
        raise e.stop("UB211", "pending_count of a state that no .noComplete arrive returned", op)
    e.set_register(state, op.dst, ("x", "&", token, MAX_COUNT))
    return [state]
