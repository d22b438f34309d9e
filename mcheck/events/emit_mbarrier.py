"""Events of the mbarrier instructions (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.events.emit import SEM_TAG, Emitter, handles, mbarrier_event
from mcheck.events.event import MbarrierStep
from mcheck.events.thread_state import State
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.mbarrier import MAX_COUNT, OBJECT_SIZE
from mcheck.semantics.mbarrier_states import copied_value, has_count
from mcheck.semantics.terms import Term


def object_of(e: Emitter, op: Op, state: State) -> int:
    """The address of the mbarrier object that an instruction works on."""
    made = e.effect_of(op, state)
    return e.require_part(op, made, made.mbarrier)


@handles(ops.MbarrierInit)
def _init(e: Emitter, op: ops.MbarrierInit, state: State) -> list[State]:
    address = object_of(e, op, state)
    mbarrier_event(e, state, op, MbarrierStep(address, "init", count=e.number(op.count, state)), (Tag.INIT,))
    return _done(state)


@handles(ops.MbarrierInval)
def _inval(e: Emitter, op: ops.MbarrierInval, state: State) -> list[State]:
    address = object_of(e, op, state)
    mbarrier_event(e, state, op, MbarrierStep(address, "inval"), (Tag.INVAL,))
    return _done(state)


def _done(state: State) -> list[State]:
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.MbarrierTx)
def _tx(e: Emitter, op: ops.MbarrierTx, state: State) -> list[State]:
    address = object_of(e, op, state)
    step = MbarrierStep(address, op.kind, tx=e.number(op.tx, state))
    tag = Tag.EXPECT if op.kind == "expect" else Tag.SIGNAL
    mbarrier_event(e, state, op, step, (tag, Tag.RLX), scope=op.scope)
    return _done(state)


@handles(ops.MbarrierArrive)
def _arrive(e: Emitter, op: ops.MbarrierArrive, state: State) -> list[State]:
    address = object_of(e, op, state)
    count = e.optional_number(op.count, state)
    step = MbarrierStep(
        address,
        "drop" if op.drop else "arrive",
        count=1 if count is None else count,
        tx=e.optional_number(op.tx, state),
        no_complete=op.no_complete,
    )
    event = mbarrier_event(e, state, op, step, (Tag.ARRIVE, SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.state, ("e", event.uid))
    return _done(state)


@handles(ops.MbarrierWait)
def _wait(e: Emitter, op: ops.MbarrierWait, state: State) -> list[State]:
    address = object_of(e, op, state)
    parity = e.optional_number(op.parity, state)
    token: Term | None = None if op.state is None else e.term(op.state, state)
    step = MbarrierStep(address, "wait", parity=parity, state=token, blocking=op.blocking)
    suspends = (Tag.TRYWAIT,) if op.blocking else ()
    event = mbarrier_event(e, state, op, step, (Tag.WAIT, *suspends, SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.dst, ("e", event.uid))
    state.order += 1
    return [state]


@handles(ops.MbarrierPending)
def _pending(e: Emitter, op: ops.MbarrierPending, state: State) -> list[State]:
    token = e.term(op.state, state)
    returned = _returned(token, state)
    if returned is None:
        condition = has_count(token)
        returned = state.truth(condition)
        if returned is None:
            stopped = state.fork()
            stopped.constrain(condition, truth=False)
            stopped.misstep, stopped.ended = e.stop("UB211", _NO_STATE, op).misstep, "undefined"
            e.stopped.append(stopped)
            state.constrain(condition, truth=True)
            returned = True
    if not returned:
        raise e.stop("UB211", _NO_STATE, op)
    e.set_register(state, op.dst, ("x", "&", token, MAX_COUNT))
    return [state]


_NO_STATE = "pending_count of a state that no .noComplete arrive returned"


def _returned(token: Term, state: State) -> bool | None:
    """Whether a state is that of a ``.noComplete`` arrive; ``None`` if that depends on a value."""
    plain = copied_value(token)
    if isinstance(plain, int) or plain[0] == "?":
        return False
    if plain[0] == "e":
        what = state.events[plain[1][1]].mbarrier
        return what.no_complete if what is not None else None
    if plain[0] == "alu" and plain[1] == "selp" and type_size(plain[2]) == OBJECT_SIZE:
        either = {_returned(a, state) for a in plain[4][:2]}
        return either.pop() if len(either) == 1 else None
    return None
