"""Operations on mbarriers: the state machine of ``mcheck.executor.mbarrier``, and what phases hand over.

Two operations on one object commute if they fall into the same phase. One that falls into the phase after another,
without being after it in time, could have come first: that order is run too. So is the order in which a wait comes
only after the phase that follows the one it waits for, unless something in that phase is after the wait.
"""

from __future__ import annotations

from mcheck.executor import mbarrier as machine
from mcheck.executor.misuse import Misuse
from mcheck.explore.phases import apply_step
from mcheck.graph.event import Event, MbarrierStep
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.protocol.agents import Split
from mcheck.protocol.clocks import joined, raised
from mcheck.protocol.fences import acquire, contributions
from mcheck.protocol.machine import Agent, Blocked, Entry, Machine, Undefined, does
from mcheck.protocol.objects import Done, Mbarrier, Signal, hand
from mcheck.protocol.polling import only_saves_a_wait
from mcheck.protocol.remedies import once, publication
from mcheck.protocol.setup import NewMbarrier

ARRIVALS = frozenset(("arrive", "drop", "async-arrive"))


def object_at(m: Machine, address: int) -> Mbarrier:
    """The mbarrier at an address; asks for a place in the vectors if it has none."""
    found = m.mbarriers.get(address)
    if found is None:
        raise NewMbarrier(address)
    return found


def misuse(
    m: Machine, agent: Agent | None, op: Op, code: str, text: str, event: Event | None, missing: str = ""
) -> Undefined:
    """A misuse ends the execution."""
    m.problem(code, text, agent, op, event, missing)
    return Undefined()


@does(ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx, ops.MbarrierArrive)
def operate(m: Machine, agent: Agent, op: Op) -> None:
    """An operation that is done at once."""
    from mcheck.protocol.accesses import runs

    if not runs(m, agent, op):
        return
    for name in ("address", "count", "tx"):
        expr = getattr(op, name, None)
        if expr is not None:
            m.known(agent, expr)
    agent.effects += 1
    event = m.emit(agent, 0, op)[0]
    step = event.mbarrier
    assert step is not None
    bar = object_at(m, step.address)
    _outlives(m, agent, bar, event)
    if step.kind == "init":
        _init(m, agent, op, bar, step, event)
    elif step.kind == "inval":
        _inval(m, agent, op, bar, event)
    else:
        _valid(m, agent, op, bar, event)
        _act(m, agent, op, bar, step, event)
    agent.pc += 1


def _outlives(m: Machine, agent: Agent, bar: Mbarrier, event: Event) -> None:
    if m.program.clustered:
        owner = m.program.memory.find(bar.address)
        if owner is not None and owner.cta is not None and owner.cta.number != agent.place[2]:
            done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "remote", 0)
            m.remote[owner.cta.number, agent.index, id(event.op)] = (done, event)
            started(m, agent, owner.cta.number, event.op)


def started(m: Machine, agent: Agent, cta: int, op: Op) -> None:
    """Another CTA's shared memory exists once one of its threads is known to run (9.7.13.3)."""
    if not any(a.place[2] == cta and agent.time[a.index] > 0 for a in m.agents):
        m.problem("UB503", "uses the shared memory of a CTA that may not have started", agent, op)


def _init(m: Machine, agent: Agent, op: Op, bar: Mbarrier, step: MbarrierStep, event: Event) -> None:
    if bar.state is not None or len(agent.lanes) > 1:
        text = f"mbarrier.init of {bar.label}, which holds a valid mbarrier object"
        raise misuse(m, agent, op, "UB202", text, event, once(bar, op))
    _no_access_before(m, agent, bar)
    try:
        bar.state = machine.init(step.count)[0]
    except Misuse as wrong:
        raise misuse(m, agent, op, wrong.code, str(wrong), event) from None
    if bar.ended is not None and not _after(agent, bar.ended):
        raise misuse(
            m, agent, op, "UB202", f"mbarrier.init of {bar.label}, which mbarrier.inval need not precede", event
        )
    bar.generation += 1
    bar.now, bar.before, bar.looks, bar.failed = [], [], [], []
    bar.known.clear()
    bar.began, bar.ended = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "init", 0), None
    bar.time = bar.next_time = m.zero
    bar.expected_bytes = bar.got_bytes = 0
    agent.causal = raised(agent.causal, bar.born, bar.generation)
    agent.inits[bar.born] = bar.generation
    m.wake(bar)


def _after(agent: Agent, done: Done) -> bool:
    return done.agent == agent.index or agent.causal[done.agent] >= done.step


def _no_access_before(m: Machine, agent: Agent, bar: Mbarrier) -> None:
    """Ordinary accesses to the object's bytes must come before it is initialised."""
    _, history = m.history(bar.address)
    view = agent.view()
    for k in history.cut(bar.address, bar.address + machine.OBJECT_SIZE):
        for record in history.cells[k]:
            if not view.before(record, record.lanes if record.agent == agent.index else None):
                code = "UB203" if record.asynchronous else "UB202"
                text = f"accesses {bar.label}, which mbarrier.init may have initialised before"
                m.problem(code, text, m.agents[record.agent], record.event.op)


def _inval(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    _valid(m, agent, op, bar, event)
    time = agent.now() if agent.single else agent.time
    for other in bar.now + bar.before + bar.looks:
        m.reverse(other, agent.index, time, agent.single)
    for signal in m.signals.values():
        if signal.address == bar.address:
            raise misuse(
                m, agent, op, "UB215", f"{bar.label} is gone while {signal.event.op.text} has still to signal it", event
            )
    assert bar.state is not None
    _unannounced(m, bar)
    bar.state = None
    bar.ended = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "inval", 0)


def _unannounced(m: Machine, bar: Mbarrier) -> None:
    """Bytes that came without being announced (UB216)."""
    if bar.state is None or bar.state.tx >= 0:
        return
    late = [d for d in bar.now if d.kind == "complete"]
    if late:
        text = f"{-bar.state.tx} bytes completed in phase {bar.state.phase} of {bar.label} that nobody announced"
        m.problem("UB216", text, m.agents[late[-1].agent], late[-1].event.op, late[-1].event)


def _valid(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    """The object exists, and its initialisation comes before this operation (9.7.13.15.3)."""
    if bar.state is None:
        undefined = misuse(m, agent, op, "UB201", f"{bar.label} holds no mbarrier", event)
        if bar.ended is not None:
            raise undefined
        raise Blocked(bar)  # and in another order it does
    if agent.causal[bar.born] < bar.generation:
        text = f"{bar.label} may hold no mbarrier yet: nothing orders its mbarrier.init before this operation"
        misuse(m, agent, op, "UB201", text, event, publication(m, agent, bar, op))
        agent.causal = raised(agent.causal, bar.born, bar.generation)  # said once; the other order is looked at as well


# --- arrivals, expectations, completions ------------------------------------------------------------------------


def _act(m: Machine, agent: Agent, op: Op, bar: Mbarrier, step: MbarrierStep, event: Event) -> None:
    """An arrive, an expect-tx or a complete-tx of a thread, or of all lanes of an agent."""
    assert bar.state is not None
    before = bar.state
    lanes = len(agent.lanes)
    time = agent.now() if agent.single else agent.time
    try:
        after, completed = _apply(step, before, lanes)
    except Misuse as wrong:
        if lanes > 1:
            raise Split([(t,) for t in agent.threads]) from None
        for other in bar.now + bar.before + bar.looks:
            m.reverse(other, agent.index, time, agent.single)
        bar.failed.append(Done(agent.index, agent.step, len(m.trace) - 1, time, event, "failed", before.phase))
        raise misuse(m, agent, op, wrong.code, f"{bar.label}: {wrong}", event) from None
    handed = contributions(agent, "REL" in event.tags, event.scope or "cta") if step.kind != "expect" else {}
    kind = "arrive" if step.kind in ARRIVALS else step.kind
    if step.no_complete:
        kind = "nocomplete"
    done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, kind, before.phase)
    if isinstance(op, ops.MbarrierArrive) and op.state is not None:
        token = machine.state_token(before, bar.address, no_complete=step.no_complete)
        m.set(agent, 0, op.state.name, "b64", token)
        m.tokens.add((bar.address, token))
    bar.expected_bytes += (step.tx or 0) * lanes if kind != "complete" else 0
    bar.got_bytes += (step.tx or 0) * lanes if kind == "complete" else 0
    _landed(m, bar, done, time, agent.index, agent.single)
    for source, know in handed.items():
        hand(bar.next_handed, source, know)
    bar.next_time = joined(bar.next_time, agent.now())
    bar.state = after
    m.assigned.append((agent.index, agent.step, "phase", bar.address, before.phase))
    if step.kind in ARRIVALS:
        bar.arrived.setdefault(before.phase, event)
    if completed:
        _complete(m, bar)


def _apply(step: MbarrierStep, state: machine.State, lanes: int) -> machine.Step:
    if lanes > 1 and step.kind == "arrive" and step.tx is None and step.count * lanes <= state.pending:
        return machine.arrive(state, step.count * lanes, no_complete=step.no_complete)
    result: machine.Step = (state, False)
    for k in range(lanes):
        result = apply_step(step, result[0])
        if result[1] and k < lanes - 1:
            raise Misuse("UB205", "lanes fall into different phases", "")
    return result


def _landed(m: Machine, bar: Mbarrier, done: Done, time: list[int], agent: int, single: bool) -> None:
    """An operation counts in the current phase: could it have counted in the one before?"""
    for other in bar.before + bar.failed:
        m.reverse(other, agent, time, single)
    bar.now.append(done)


def _complete(m: Machine, bar: Mbarrier) -> None:
    """The phase is complete: those who wait for it go on, with what it hands over."""
    _overrun(m, bar)
    early(m, bar)
    for source, know in bar.next_handed.items():
        hand(bar.handed, source, know)
    bar.next_handed = {}
    assert bar.state is not None
    bar.time = raised(joined(bar.time, bar.next_time), bar.seen, bar.state.phase)
    bar.before, bar.now, bar.looks = bar.now, [], []
    bar.expected_bytes = bar.got_bytes = 0
    m.wake(bar)


def _overrun(m: Machine, bar: Mbarrier) -> None:
    """Waits of this phase's time that could as well come when it is over, because nothing in it is after them."""
    for look in bar.looks:
        if any(d.time[look.agent] >= look.step for d in bar.now):
            continue
        m.postpone(look.position, tuple(d.position for d in bar.now))
        if not m.agents[look.agent].single:
            m.coarse.add(look.agent)


def early(m: Machine, bar: Mbarrier, *, ended: bool = False) -> None:
    """Expectations and .noComplete arrives that need not precede an arrival could come when the phase is over."""
    for done in bar.now:
        if done.kind not in ("expect", "nocomplete"):
            continue
        if not any(
            d is not done and d.kind in ("arrive", "complete") and (d.time[done.agent] >= done.step) for d in bar.now
        ):
            others = tuple(d.position for d in bar.now if d is not done and d.time[done.agent] < done.step)
            if others:
                m.postpone(done.position, others, now=not ended)


def increment(m: Machine, agent: Agent, op: Op, emitted: list[list[Event]]) -> None:
    """What cp.async.mbarrier.arrive does at once: a pending arrival more (9.7.13.15.15)."""
    for events in emitted:
        for event in events:
            step = event.mbarrier
            if step is not None and step.kind == "increment":
                bar = object_at(m, step.address)
                _valid(m, agent, op, bar, event)
                assert bar.state is not None
                try:
                    bar.state, _ = machine.async_arrive_begin(bar.state)
                except Misuse as wrong:
                    raise misuse(m, agent, op, wrong.code, f"{bar.label}: {wrong}", event) from None
                time = agent.now() if agent.single else agent.time
                done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "expect", bar.state.phase)
                _landed(m, bar, done, time, agent.index, agent.single)


def deliver(m: Machine, signal: Signal, entry: Entry) -> None:
    """A completion signal reaches its mbarrier."""
    bar = object_at(m, signal.address)
    agent = m.agents[signal.agent]
    step = signal.event.mbarrier
    assert step is not None
    _valid_signal(m, agent, signal, bar)
    assert bar.state is not None
    phase = bar.state.phase
    entry.signal, entry.phase = bar.seen, phase
    done = Done(agent.index, signal.step, len(m.trace) - 1, signal.time, signal.event, "complete", phase, bar.seen)
    if signal.kind == "async-arrive":
        done.kind = "arrive"
    try:
        after, completed = bar.state, False
        for k in range(signal.count):
            if signal.kind == "complete":
                after, completed = machine.complete_tx(after, signal.tx)
            else:
                after, completed = machine.async_arrive_end(after)
            if completed and k < signal.count - 1:
                raise Split([(t,) for t in agent.threads])
    except Misuse as wrong:
        if len(agent.lanes) > 1:
            raise Split([(t,) for t in agent.threads]) from None
        for other in bar.now + bar.before + bar.looks:
            m.reverse(other, -1, signal.time, True)
        done.kind = "failed"
        bar.failed.append(done)
        raise misuse(m, agent, signal.event.op, wrong.code, f"{bar.label}: {wrong}", signal.event) from None
    bar.got_bytes += signal.tx * signal.count
    _landed(m, bar, done, signal.time, -1, True)
    for record in signal.records:
        record.signals.append((bar.seen, phase))
    bar.next_time = joined(bar.next_time, signal.time)
    bar.state = after
    m.assigned.append((signal.key, "phase", bar.address, phase))
    if done.kind == "arrive":
        bar.arrived.setdefault(phase, signal.event)
    if completed:
        _complete(m, bar)


def _valid_signal(m: Machine, agent: Agent, signal: Signal, bar: Mbarrier) -> None:
    if bar.state is None:
        code, text = ("UB201", f"{bar.label} holds no mbarrier") if bar.ended is None else (
            "UB215", f"{bar.label} is gone before this operation has signalled it")  # fmt: skip
        raise misuse(m, agent, signal.event.op, code, text, signal.event)


def announced(m: Machine, agent: Agent, address: int, event: Event) -> bool:
    """The issue of an operation that will signal: whether there is an object that exists for the issuing thread by
    then.
    """
    bar = m.mbarriers.get(address)
    if bar is None:
        misuse(m, agent, event.op, "UB201", f"{m.label(address)} holds no mbarrier", event)
        m.ended = "undefined"
        return False
    if bar.state is not None:
        _valid(m, agent, event.op, bar, event)
    return True


# --- waits --------------------------------------------------------------------------------------------------------


def _answer(
    m: Machine,
    agent: Agent,
    op: ops.MbarrierWait,
    bar: Mbarrier,
    state: machine.State,
    step: MbarrierStep,
    event: Event,
) -> tuple[bool, Misuse | None]:
    """What the wait returns; with the misuse if it is for a phase that is long gone."""
    last = bar.known.get(agent.index, -1)
    try:
        if step.parity is None:
            token = m.uniform(agent, op.state) if op.state is not None else None
            if not isinstance(token, int) or (bar.address, token) not in m.tokens:
                raise Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", "")
            return machine.wait_state(state, token, bar.address), None
        done = machine.wait_parity(state, step.parity)
    except Misuse as wrong:
        raise misuse(m, agent, op, wrong.code, f"{bar.label}: {wrong}", event) from None
    meant = last if state.phase - 1 == last and done else machine.next_phase(last, step.parity)
    if meant < state.phase - 1:
        try:
            machine.check_awaited(state, meant)
        except Misuse as wrong:
            return done, wrong
    return done, None


def wait(
    m: Machine, agent: Agent, op: ops.MbarrierWait, *, must: bool, learns: bool = True, matters: bool = True
) -> bool:
    """test_wait, try_wait; with ``must`` the agent blocks until the answer is true.

    Without ``learns`` the answer is ignored and nothing is known after it; unless it ``matters`` no other is sought.
    """
    for expr in (op.address, op.parity):
        if expr is not None:
            m.known(agent, expr)
    event = m.emit(agent, 0, op)[0]
    step = event.mbarrier
    assert step is not None
    bar = object_at(m, step.address)
    _valid(m, agent, op, bar, event)
    state = bar.state
    assert state is not None
    time = agent.now() if agent.single else agent.time
    done, late = _answer(m, agent, op, bar, state, step, event)
    if late is not None or not ((done and must) or not matters):
        # It could have come before the phase that is just over was complete, and found another answer.
        for other in bar.before:
            m.reverse(other, agent.index, time, agent.single)
    if late is not None:
        undefined = misuse(m, agent, op, late.code, f"{bar.label}: {late}", event)
        if must and not done:
            raise Blocked(bar)
        bar.failed.append(Done(agent.index, agent.step, len(m.trace) - 1, time, event, "failed", state.phase))
        raise undefined
    if must and not done:
        raise Blocked(bar)
    agent.looked["mbarrier", bar.address] = state.phase
    kind = "wait" if done else "miss"
    if done or matters:
        bar.looks.append(Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, kind, state.phase))
    m.assigned.append((agent.index, agent.step, kind, bar.address, state.phase))
    if done:
        bar.waited.add(state.phase - 1)
    if done and learns:
        bar.known[agent.index] = state.phase - 1
        agent.time = raised(joined(agent.time, bar.time), bar.seen, state.phase)
        acquires = "ACQ" in event.tags
        if acquires:
            agent.causal = raised(agent.causal, bar.seen, state.phase)
        else:
            agent.pending_seen[bar.seen] = state.phase
        acquire(agent, bar.handed, event.scope or "cta", acquires)
    return done


@does(ops.MbarrierWait)
def test(m: Machine, agent: Agent, op: Op) -> None:
    """A wait that gives its answer in a register."""
    from mcheck.protocol.accesses import runs

    assert isinstance(op, ops.MbarrierWait)
    if not runs(m, agent, op):
        return
    labels = m.program.threads[agent.threads[0]].labels
    if op.dst is not None and m.setup.spins(agent.index, agent.pc):
        wait(m, agent, op, must=True)
        for lane in range(len(agent.lanes)):
            m.set(agent, lane, op.dst.name, "pred", 1)
        agent.pc += 1
        return
    wanted = op.dst is not None and op.dst.name in m.setup.needed[agent.threads[0]]
    if not wanted and op.dst is not None:
        for lane in range(len(agent.lanes)):
            m.set(agent, lane, op.dst.name, "pred", None)
        wait(m, agent, op, must=False, learns=False)
        agent.pc += 1
        return
    asked = op.dst is not None and op.dst.name in m.setup.asked(agent.index)
    matters = asked or not only_saves_a_wait(agent.code, labels, agent.pc)
    result = wait(m, agent, op, must=False, matters=matters)
    if op.dst is not None:
        for lane in range(len(agent.lanes)):
            m.set(agent, lane, op.dst.name, "pred", int(result))
    agent.pc += 1


@does(ops.MbarrierPending)
def pending(m: Machine, agent: Agent, op: Op) -> None:
    """``mbarrier.pending_count``."""
    from mcheck.protocol.accesses import runs

    assert isinstance(op, ops.MbarrierPending)
    if not runs(m, agent, op):
        return
    token = m.uniform(agent, op.state)
    try:
        value = machine.pending_count(token if isinstance(token, int) else 0)
    except Misuse as wrong:
        raise misuse(m, agent, op, wrong.code, str(wrong), None) from None
    m.set(agent, 0, op.dst.name, "u32", value)
    agent.pc += 1
