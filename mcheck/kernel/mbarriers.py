"""Operations on mbarriers: the state machine of ``mcheck.executor.mbarrier``, and which phases waits find.

Two operations on one object commute if they fall into the same phase. One that falls into the phase after another,
without being after it in time, could have come first: that order is run too. So are those in which an expectation
comes only when the phase is over, with all that follows from it (``postponed``), and in which a look at the object
comes only after the phase that it found. A look may also find an earlier phase than the current one, where the model
lets it: it is stale. That may depend on which operation of the phase came last (``mcheck.kernel.last_of_phase``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcheck.candidates.phases import SIGNALS, apply_step
from mcheck.executor import mbarrier as machine
from mcheck.executor.misuse import Misuse
from mcheck.findings.afterwards import OF_THE_MISUSED, goes_on
from mcheck.graph.event import Event, MbarrierStep
from mcheck.kernel import last_of_phase, overtaking
from mcheck.kernel.agents import Split
from mcheck.kernel.clocks import joined, raised
from mcheck.kernel.control import runs
from mcheck.kernel.machine import Agent, Blocked, Entry, Machine, Undefined, does
from mcheck.kernel.objects import Done, Mbarrier, Signal
from mcheck.kernel.polling import only_saves_a_wait
from mcheck.kernel.problems import Problem
from mcheck.kernel.remedies import once
from mcheck.kernel.setup import NewMbarrier
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.views.entries import Entry as Live
from mcheck.views.entries import sum_of

ARRIVALS = frozenset(("arrive", "drop", "async-arrive"))
GONE = "behind a barrier that did not wait for a thread that had exited, a wait may find the object of before"
"""An exit orders time and no memory (9.7.13.1)."""


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
    if agent is not None:
        m.assigned.append((agent.index, agent.step, "misuses", code))
    return Undefined()


# --- the object's events in the window --------------------------------------------------------------------------


def enter(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, *, ends: bool = False, part: int = 0,
    edges: list[dict[str, int]] | None = None,
) -> tuple[Live, ...]:  # fmt: skip
    """An operation that is no wait, in a phase of the present object; ``ends``: it completes the phase, or invalidates
    the object.
    """
    acts, waits = bar.before_phase(phase)
    here = bar.at(phase)
    if m.watch is not None and m.watch.hides(agent):
        return m.put(agent, event, part=part, edges=edges)
    common = {"phase-order": acts, "phase-fr": waits | (here.waits if ends else 0)}
    entries = m.put(agent, event, part=part, common=common, edges=edges)
    bits = sum_of(entries)
    here.acts |= bits
    if event.mbarrier is not None and event.mbarrier.kind in SIGNALS:
        here.signals |= bits
    if ends:
        here.ending |= bits
    return entries


# --- operations that are done at once -----------------------------------------------------------------------------


@does(ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx, ops.MbarrierArrive)
def operate(m: Machine, agent: Agent, op: Op) -> None:
    """An operation that is done at once."""
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
    if step.kind == "init":
        _init(m, agent, op, bar, step, event)
    elif step.kind == "inval":
        _inval(m, agent, op, bar, event)
    else:
        _valid(m, agent, op, bar, event)
        _act(m, agent, op, bar, step, event)
    agent.pc += 1


def _init(m: Machine, agent: Agent, op: Op, bar: Mbarrier, step: MbarrierStep, event: Event) -> None:
    if bar.state is not None or len(agent.lanes) > 1:
        text = f"mbarrier.init of {m.label(bar.address)}, which holds a valid mbarrier object"
        raise misuse(m, agent, op, "UB202", text, event, once(bar, op))
    try:
        state = machine.init(step.count)[0]
    except Misuse as wrong:
        raise misuse(m, agent, op, wrong.code, str(wrong), event) from None
    if bar.ended is not None and not _after(agent, bar.ended):
        m.reverse(bar.ended, agent.index, agent.now(), agent.single)
    bar.state = state
    bar.generation += 1
    bar.now, bar.before, bar.looks, bar.failed = [], [], [], []
    bar.known.clear()
    bar.older.clear()
    bar.joined = -1
    bar.times = {}
    began = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "init", 0)
    bar.time = bar.next_time = m.zero
    bar.expected_bytes = bar.got_bytes = 0
    entries = enter(m, agent, bar, event, -1)
    overtaking.gone(m, bar, began, entries, agent.now())
    if bar.ended is not None:
        bar.renewed += (bar.ended, began)
    bar.began, bar.ended = began, None
    m.queue.extend(key for key, signal in m.signals.items() if signal.address == bar.address and key not in m.queue)
    m.wake(bar)


def _after(agent: Agent, done: Done) -> bool:
    return done.agent == agent.index or agent.time[done.agent] >= done.step


def _inval(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    _valid(m, agent, op, bar, event)
    time = agent.now() if agent.single else agent.time
    for other in bar.now + bar.before + bar.looks + bar.failed:
        m.reverse(other, agent.index, time, agent.single)
    for signal in m.signals.values():
        if signal.address == bar.address:
            text = f"{m.label(bar.address)} is gone while {signal.event.op.text} has still to signal it"
            raise misuse(m, agent, op, "UB215", text, event)
    assert bar.state is not None
    bar.unannounced += unannounced(m, bar)
    postponed(m, bar, ended=True)  # as at the end of the execution: nothing else comes to this phase
    entries = enter(m, agent, bar, event, bar.state.phase, ends=True)
    ended = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, "inval", 0)
    overtaking.gone(m, bar, ended, entries, time)
    bar.state, bar.ended = None, ended
    m.wake(bar)  # who asks again asks for what is gone


def unannounced(m: Machine, bar: Mbarrier) -> list[Problem]:
    """Bytes that came without being announced (UB216)."""
    if bar.state is None or bar.state.tx >= 0:
        return []
    late = [d for d in bar.now if d.kind == "complete"]
    if not late:
        return []
    text = f"{-bar.state.tx} bytes completed in phase {bar.state.phase} of {m.label(bar.address)} that nobody announced"
    return [m.misused("UB216", text, m.agents[late[-1].agent], late[-1].event.op, late[-1].event)]


def _valid(m: Machine, agent: Agent, op: Op, bar: Mbarrier, event: Event) -> None:
    """The object exists; that its initialisation comes before this operation is a flag of the model (9.7.13.15.3)."""
    time = agent.now() if agent.single else agent.time
    if bar.state is not None:
        for other in bar.renewed:  # it could have found the object of before, or none
            m.reverse(other, agent.index, time, agent.single)
        return
    if bar.ended is None:
        raise Blocked(bar)  # in another order there is an object
    m.reverse(bar.ended, agent.index, time, agent.single)
    overtaking.refused(m, agent, bar, event, [bar.ended], time)
    raise misuse(m, agent, op, "UB201", f"{m.label(bar.address)} holds no mbarrier", event)


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
        _failed(m, agent, bar, event, time)
        if goes_on(m.program, wrong.code, op):  # the object is left as it is
            m.problem(wrong.code, f"{m.label(bar.address)}: {wrong}", agent, op, event)
            enter(m, agent, bar, event, before.phase)
            return
        unpublished(m, agent, bar, event)
        raise misuse(m, agent, op, wrong.code, f"{m.label(bar.address)}: {wrong}", event) from None
    kind = "arrive" if step.kind in ARRIVALS else step.kind
    if step.no_complete:
        kind = "nocomplete"
    done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, kind, before.phase)
    done.effect = _effect(step, lanes)
    if isinstance(op, ops.MbarrierArrive) and op.state is not None:
        token = machine.state_token(before, bar.address, no_complete=step.no_complete)
        for lane in range(lanes):  # of lanes together only the phase is asked for
            m.set(agent, lane, op.state.name, "b64", token)
        m.tokens.add((bar.address, token))
    bar.expected_bytes += (step.tx or 0) * lanes if kind != "complete" else 0
    bar.got_bytes += (step.tx or 0) * lanes if kind == "complete" else 0
    _landed(m, bar, done, time, agent.index, agent.single)
    entries = enter(m, agent, bar, event, before.phase, ends=completed)
    overtaking.landed(m, bar, done, entries, time)
    if m.watch is not None:
        m.watch.entered(m, bar, done, entries)
    if m.watch is None or not m.watch.hides(agent):
        bar.next_time = joined(bar.next_time, agent.now())
    bar.state = after
    m.assigned.append((agent.index, agent.step, "phase", bar.address, bar.generation, before.phase))
    if step.kind in ARRIVALS:
        bar.arrived.setdefault((bar.generation, before.phase), event)
    if completed:
        _complete(m, bar)


def _failed(m: Machine, agent: Agent, bar: Mbarrier, event: Event, time: list[int]) -> None:
    """An operation is undefined where it came: those before it could come after it."""
    assert bar.state is not None
    for other in bar.now + bar.before + bar.looks:
        m.reverse(other, agent.index, time, agent.single)
    overtaking.refused(m, agent, bar, event, bar.now + bar.before + bar.looks, time)
    bar.failed.append(Done(agent.index, agent.step, len(m.trace) - 1, time, event, "failed", bar.state.phase))
    m.assigned.append((agent.index, agent.step, "refused", bar.generation, bar.state))


def unpublished(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, edges: list[dict[str, int]] | None = None
) -> None:
    """What the flags say of an operation that is undefined for another reason: see ``OF_THE_MISUSED``. It enters no
    phase, so it is in the window for that alone.
    """
    saved, known = m.save(bar), len(m.problems)
    m.put(agent, event, edges=edges)
    told = [p for p in m.problems[known:] if p.code in OF_THE_MISUSED]
    m.restore(saved, bar)
    m.problems += told
    m.reported |= {(p.code, event.op.span) for p in told}


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
    for other in bar.before:
        if m.reverse(other, agent, time, single):
            m.exchanged.append((bar.address, (other.agent, other.step), (done.agent, done.step)))
    for other in bar.failed:
        m.reverse(other, agent, time, single)
    if m.watch is not None:
        m.watch.landed(m, bar, done, time)
    bar.now.append(done)


def _complete(m: Machine, bar: Mbarrier) -> None:
    """The phase is complete: those who wait for it go on."""
    _overrun(m, bar)
    postponed(m, bar)
    assert bar.state is not None
    bar.time = raised(joined(bar.time, bar.next_time), bar.seen, bar.state.phase)
    bar.times[bar.state.phase] = bar.time
    bar.times.pop(bar.joined - 1, None)
    if bar.state.phase > 1:
        bar.older[bar.state.phase - 2] = bar.before
    bar.before, bar.now, bar.looks = bar.now, [], []
    bar.expected_bytes = bar.got_bytes = 0
    m.wake(bar)


def _overrun(m: Machine, bar: Mbarrier) -> None:
    """Waits of this phase's time that could as well come when it is over, because nothing in it is after them."""
    for look in bar.looks:
        behind = [d for d in bar.now if d.time[look.agent] >= look.step]
        if behind:
            overtaking.all_loose(m, look, behind)
            continue
        m.postpone(look.position, tuple(d.position for d in bar.now))
        if not m.agents[look.agent].single:
            m.coarse.add(look.agent)


LATEST = -1
"""What a look finds that finds the current phase."""
STALE = 4
"""So many earlier phases a look may find; more of them only if the model lets it find none of these."""
MAX_TOGETHER = 5
"""So many expectations and completions of a phase are postponed in every combination, more of them only one by one."""


def postponed(m: Machine, bar: Mbarrier, *, ended: bool = False) -> None:
    """Expectations and completions that could come when the phase is over, with all that follows from them;
    .noComplete arrives last.

    What is left of the phase without them, and without what is after them in time, has to complete it all the same: all
    arrivals must be there, and the bytes that came be those that were announced.
    """
    # At the end of a phase nothing is pending: so it is without some operations if these add nothing up.
    left = (0, 0) if not ended or bar.state is None else (bar.state.pending, bar.state.tx)
    for done, others, last in _postponable(bar.now, left, _follows):
        m.postpone(done.position, others, now=not ended and not last)
    if left == (0, 0) and _unheard(bar.now, _follows):  # what these find depends on the order of the others
        m.assigned.append(("order", bar.address, bar.generation, *((d.agent, d.step, d.kind) for d in bar.now)))
    loose = next((d for d in bar.now if d.loose), None)
    if loose is not None and any(True for _ in _postponable(bar.now, left, overtaking.follows(_follows))):
        overtaking.tell(m, loose.loose[0].event, loose.event)


Postponed = tuple[Done, tuple[int, ...], bool]
"""An operation that may come later, the places of those that then come before it, whether the last one does not."""


def _postponable(now: list[Done], left: tuple[int, int], follows: Callable[[Done, Done], bool]) -> Iterator[Postponed]:
    """The operations of a phase that could come when it is over, if those that follow them do, too."""
    for done in now:
        if done.kind == "nocomplete" and not any(follows(done, d) for d in now if d.kind in ("arrive", "complete")):
            others = tuple(d.position for d in now if d is not done and not follows(done, d))
            if others:
                yield done, others, False
    if left == (0, 0) and all(d.kind != "expect" for d in now):
        return
    movable = [d for d in now if d.kind in ("expect", "complete")]
    groups = [[d] for d in movable]
    if 1 < len(movable) <= MAX_TOGETHER:
        groups += [[d for k, d in enumerate(movable) if mask >> k & 1] for mask in range(1, 1 << len(movable))]
    for group in groups:
        later = {id(d) for d in now if any(d is e or follows(e, d) for e in group)}
        rest = [d for d in now if id(d) not in later]
        moved = [d.effect for d in now if id(d) in later]
        if rest and (sum(p for p, _ in moved), sum(t for _, t in moved)) == left:
            for d in group:
                yield d, tuple(x.position for x in rest), id(now[-1]) in later
    for d in _unheard(now, follows) if left == (0, 0) else ():
        before = tuple(x.position for x in now if x is not d and not follows(d, x))
        if before:
            yield d, before, d is now[-1] or follows(d, now[-1])


def _unheard(now: list[Done], follows: Callable[[Done, Done], bool]) -> list[Done]:
    """The expectations of bytes that no arrival and no completion of the phase comes after: where the completions come
    first, they may find all arrivals spent (UB217).
    """
    return [
        d
        for d in now
        if d.effect[1] > 0 and not d.effect[0] and not any(follows(d, x) for x in now if x.kind != "expect")
    ]


def _effect(step: MbarrierStep, count: int) -> tuple[int, int]:
    """What so many operations add to the pending arrivals and to the tx-count."""
    arrivals = step.count if step.kind in ARRIVALS else 0
    bytes_ = step.tx or 0
    return -arrivals * count, (-bytes_ if step.kind == "complete" else bytes_) * count


def _follows(first: Done, then: Done) -> bool:
    """Whether an operation on the object comes after another one of its phase in time.

    Nobody knows of a completion before the phase is over: only one of a later commit of the thread is after it (Q26).
    """
    if first.signal >= 0:
        ordered = all(isinstance(d.event.op, ops.TensorCommit) for d in (first, then))
        return ordered and then.agent == first.agent and then.step > first.step
    if then.agent == first.agent and then.signal < 0:
        return then.step > first.step
    return then.time[first.agent] >= first.step


def increment(m: Machine, agent: Agent, op: Op, events: list[Event]) -> None:
    """What cp.async.mbarrier.arrive does at once: a pending arrival more (9.7.13.15.15)."""
    step = events[0].mbarrier
    assert step is not None
    bar = object_at(m, step.address)
    _valid(m, agent, op, bar, events[0])
    assert bar.state is not None
    for _ in events:
        try:
            bar.state, _ = machine.async_arrive_begin(bar.state)
        except Misuse as wrong:
            unpublished(m, agent, bar, events[0])
            raise misuse(m, agent, op, wrong.code, f"{m.label(bar.address)}: {wrong}", events[0]) from None
    time = agent.now() if agent.single else agent.time
    done = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), events[0], "expect", bar.state.phase)
    done.effect = len(events), 0
    _landed(m, bar, done, time, agent.index, agent.single)
    entries = enter(m, agent, bar, events[0], bar.state.phase)
    overtaking.landed(m, bar, done, entries, time)


def deliver(m: Machine, signal: Signal, entry: Entry) -> None:
    """A completion signal reaches its mbarrier."""
    bar = object_at(m, signal.address)
    agent = m.agents[signal.agent]
    step = signal.event.mbarrier
    assert step is not None
    if bar.state is None and bar.ended is None:
        raise Blocked(bar)  # it comes when there is an object: see finish
    if bar.state is None:
        text = f"{m.label(bar.address)} is gone before this operation has signalled it"
        raise misuse(m, agent, signal.event.op, "UB215", text, signal.event)
    if not _in_order(m, agent, signal):
        raise Blocked(bar)
    phase = bar.state.phase
    entry.signal, entry.phase = bar.seen, phase
    done = Done(agent.index, signal.step, len(m.trace) - 1, signal.time, signal.event, "complete", phase, bar.seen)
    done.effect = _effect(step, signal.count)
    for other in bar.renewed:
        m.reverse(other, -1, signal.time, True)
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
        overtaking.refused(
            m, agent, bar, signal.event, bar.now + bar.before + bar.looks, signal.time, issues=signal.issues
        )
        done.kind = "failed"
        bar.failed.append(done)
        m.assigned.append((signal.key, "refused", bar.generation, bar.state))
        unpublished(m, agent, bar, signal.event, [overtaking.begun_by(e) for e in signal.issues])
        raise misuse(m, agent, signal.event.op, wrong.code, f"{m.label(bar.address)}: {wrong}", signal.event) from None
    bar.got_bytes += signal.tx * signal.count
    _landed(m, bar, done, signal.time, -1, True)
    edges = [overtaking.begun_by(e) for e in signal.issues]
    entries = enter(m, agent, bar, signal.event, phase, ends=completed, edges=edges)
    overtaking.landed(m, bar, done, entries, signal.time)
    for record in signal.records:
        record.signalled = True
        bar.at(phase).copies |= record.bits
    bar.next_time = joined(bar.next_time, signal.time)
    bar.state = after
    m.assigned.append((signal.key, "phase", bar.address, bar.generation, phase))
    if done.kind == "arrive":
        bar.arrived.setdefault((bar.generation, phase), signal.event)
    if completed:
        _complete(m, bar)
    if isinstance(signal.event.op, ops.TensorCommit):
        agent.committed = joined(signal.time, bar.time) if completed else signal.time
        m.queue.extend(key for key, s in m.signals.items() if _commits(s, agent) and key not in m.queue)


def _in_order(m: Machine, agent: Agent, signal: Signal) -> bool:
    """Whether a signal may come now: those of the commits of a thread come in their order (open question Q26), and who
    learns of one knows of those before it.
    """
    if not isinstance(signal.event.op, ops.TensorCommit):
        return True
    if any(_commits(s, agent) and s.step < signal.step for s in m.signals.values()):
        return False
    if agent.committed is not None:
        signal.time = joined(signal.time, agent.committed)
    return True


def _commits(signal: Signal, agent: Agent) -> bool:
    return signal.agent == agent.index and isinstance(signal.event.op, ops.TensorCommit)


def announced(m: Machine, agent: Agent, address: int, event: Event) -> bool:
    """The issue of an operation that will signal: whether there is an object for it to signal."""
    if m.mbarriers.get(address) is None:
        misuse(m, agent, event.op, "UB201", f"{m.label(address)} holds no mbarrier", event)
        m.ended = "undefined"
        return False
    return True


# --- waits --------------------------------------------------------------------------------------------------------


def _answer(
    m: Machine, agent: Agent, op: ops.MbarrierWait, bar: Mbarrier, state: machine.State, step: MbarrierStep
) -> bool | Misuse:
    """What a wait that finds the object in this state returns, or what is wrong with it."""
    try:
        if step.parity is not None:
            return machine.wait_parity(state, step.parity)
        token = m.uniform(agent, op.state) if op.state is not None else None
        if not isinstance(token, int) or (bar.address, token) not in m.tokens:
            return Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", "")
        return machine.wait_state(state, token, bar.address)
    except Misuse as wrong:
        return wrong


def _look(
    m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, done: bool, *, ended: bool = True
) -> tuple[Live, ...]:  # fmt: skip
    """The wait in the window, finding the object in a phase: edges to and from the operations on the object; unless
    ``ended`` it may come behind what completed the phase.
    """
    every, own = bar.earlier(phase)
    common = {"phase-order": every.acts}
    if done:
        common["phase"] = own.signals
        common["complete"] = own.copies
    back = bar.at(phase).ending if ended else 0
    for (life, number), acts in bar.phases.items():
        if (life, number) > (bar.generation, phase):
            back |= acts.acts
    entries = m.put(agent, event, common=common, back={"phase-fr": back} if back else None)
    bar.at(phase).waits |= sum_of(entries)
    return entries


def looked_in_vain(m: Machine, agent: Agent, bar: Mbarrier) -> None:
    """A wait that never ends has been executed all the same: what the flags say of it counts."""
    assert bar.state is not None
    event = m.emit(agent, 0, ops.performed(agent.code[agent.pc]))[0]
    agent.step += 1
    _look(m, agent, bar, event, bar.state.phase, False)


def _stale(m: Machine, agent: Agent, bar: Mbarrier, event: Event, answers: dict[int, bool]) -> list[int]:
    """The earlier phases than the current one that the model lets a look find, latest first."""
    out: list[int] = []
    for phase in sorted(answers, reverse=True):
        m.setup.deadline()
        if len(answers) > STALE and phase < sorted(answers)[-STALE]:
            m.bounded = m.bounded or bool(out)
            break
        saved = m.save(bar)
        _look(m, agent, bar, event, phase, answers[phase])
        possible = m.impossible is None
        m.restore(saved, bar)
        if possible:
            out.append(phase)
        else:
            _ended_otherwise(m, agent, bar, event, phase, answers[phase])
    return out


def _ended_otherwise(m: Machine, agent: Agent, bar: Mbarrier, event: Event, phase: int, done: bool) -> None:
    """The model lets no look find this phase, now that it was completed as it was: whether it would if another one of
    its operations had come last. Time may order that one before the look where no axiom does.
    """
    assert bar.state is not None
    time = agent.now() if agent.single else agent.time
    may_end = last_of_phase.may_come_last(bar.done_in(phase), _follows)
    if not may_end or (phase == bar.state.phase - 1 and last_of_phase.any_after(bar.before, time)):
        return  # where the look may come first, it is run before them
    saved = m.save(bar)
    _look(m, agent, bar, event, phase, done, ended=False)
    free = overtaking.free(m, may_end) if m.impossible is None else ()
    m.restore(saved, bar)
    last_of_phase.put_last(m, agent, bar.done_in(phase), free, _follows)


def wait(
    m: Machine, agent: Agent, op: ops.MbarrierWait, *, must: bool, matters: bool = True, used: bool = True
) -> bool:  # fmt: skip
    """test_wait, try_wait; with ``must`` the agent blocks until the answer is true.

    Unless it ``matters`` no other answer is sought; ``used``: whether anything depends on it.
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
    if m.absent and matters and bar.generation > 1:
        m.unsure = GONE
    time = agent.now() if agent.single else agent.time
    done = _answer(m, agent, op, bar, state, step)
    if not (done is True and must) and (matters or isinstance(done, Misuse)):
        for other in bar.before:  # it could have come before the phase that is just over was complete
            m.reverse(other, agent.index, time, agent.single)
    phase = state.phase
    if matters and not m.brief:
        phase = _which(m, agent, op, bar, state, step, event, done, must, used)
        done = _answer(m, agent, op, bar, _as_of(state, phase), step)
    if isinstance(done, Misuse):
        unpublished(m, agent, bar, event)
        raise misuse(m, agent, op, done.code, f"{m.label(bar.address)}: {done}", event)
    if must and not done:
        raise Blocked(bar)
    if m.watch is not None:
        m.watch.waited(bar, agent, event, awaited=must and step.parity is not None)
    agent.looked["mbarrier", bar.address] = state.phase if phase == state.phase else -1
    kind = "wait" if done else "miss"
    look = Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, kind, phase)
    if done or matters:
        bar.looks.append(look)
    m.assigned.append((agent.index, agent.step, kind, bar.address, bar.generation, phase))
    entries = look.entries = _look(m, agent, bar, event, phase, done)
    overtaking.made(m, bar, look, time)
    if must:
        m.depend(agent, entries)
    elif op.dst is not None:
        for lane, entry in enumerate(entries):
            agent.origin[lane][op.dst.name] = entry.bit
    if done:
        bar.waited.add((bar.generation, phase - 1))
    if done:
        bar.known[agent.index] = phase - 1
        over = bar.times.get(phase, bar.time) if phase else m.zero  # before the first phase nothing was
        agent.time = raised(joined(agent.time, over), bar.seen, phase)
    return done


def _as_of(state: machine.State, phase: int) -> machine.State:
    """The object as a look finds it that is stale by whole phases."""
    return state if phase == state.phase else machine.State(phase, state.expected, state.expected, 0)


def _which(
    m: Machine, agent: Agent, op: ops.MbarrierWait, bar: Mbarrier, state: machine.State, step: MbarrierStep,
    event: Event, done: bool | Misuse, must: bool, used: bool,
) -> int:  # fmt: skip
    """The phase that the look finds: the current one or, where the model lets it, one before; all are explored, the
    one before first where the thread would wait for ever else, or goes on as if it had waited whatever the answer is.

    What is misused in an earlier phase only is a state operand of a later one, which its own thread has from there.
    """
    first = max(0, bar.joined + 1, bar.known.get(agent.index, -1) + 1)
    every = {p: _answer(m, agent, op, bar, _as_of(state, p), step) for p in range(first, state.phase)}
    answers = {p: a for p, a in every.items() if not isinstance(a, Misuse) and (a or not must)}
    if not answers:
        return state.phase
    found = _stale(m, agent, bar, event, answers)
    if not found:
        return state.phase
    taken = m.pick((*found, LATEST) if (must and not done) or not used else (LATEST, *found))
    return state.phase if taken == LATEST else taken


@does(ops.MbarrierWait)
def test(m: Machine, agent: Agent, op: Op) -> None:
    """A wait that gives its answer in a register."""
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
    if not wanted:
        wait(m, agent, op, must=False, used=False)
        if op.dst is not None:
            for lane in range(len(agent.lanes)):
                m.set(agent, lane, op.dst.name, "pred", None)
        agent.pc += 1
        return
    asked = op.dst is not None and op.dst.name in m.setup.asked(agent.index)
    matters = asked or not only_saves_a_wait(agent.code, labels, agent.pc)
    result = wait(m, agent, op, must=False, matters=matters)
    if op.dst is not None:
        for lane in range(len(agent.lanes)):
            source = agent.origin[lane].get(op.dst.name, 0)
            m.set(agent, lane, op.dst.name, "pred", int(result))
            agent.origin[lane][op.dst.name] = source
    agent.pc += 1


@does(ops.MbarrierPending)
def pending(m: Machine, agent: Agent, op: Op) -> None:
    """``mbarrier.pending_count``."""
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
