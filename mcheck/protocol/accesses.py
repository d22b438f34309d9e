"""Loads, stores and the memory operations of asynchronous instructions."""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.graph.terms import Term, Uid, Unknown, evaluate
from mcheck.program import ops
from mcheck.program.expr import Const
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.program.ops import Op
from mcheck.protocol import warps, words
from mcheck.protocol.agents import Split
from mcheck.protocol.control import guarded
from mcheck.protocol.history import Lanes, Record, View
from mcheck.protocol.machine import Agent, Machine, coalesced, does
from mcheck.protocol.objects import Signal
from mcheck.protocol.polling import spun_value
from mcheck.protocol.races import touch
from mcheck.protocol.setup import Footprint


def runs(m: Machine, agent: Agent, op: Op) -> bool:
    """Whether the operation's guard lets it run; if not, the agent goes on behind it."""
    if op.guard is not None and not guarded(m, agent, op):
        agent.pc += 1
        return False
    return True


def lane_op(m: Machine, agent: Agent, lane: int) -> Op:
    """The present operation of one lane."""
    return m.program.threads[agent.threads[lane]].code[agent.pc]


# --- records ----------------------------------------------------------------------------------------------


def record_of(m: Machine, agent: Agent, event: Event, lanes: Lanes) -> Record:
    """The record of a memory event."""
    tags = event.tags
    proxy = "ASYNC" if "ASYNC" in tags else "TMAP" if "TMAP" in tags else "GEN"
    spaces: tuple[object, ...]
    if "SHARED" in tags:
        spaces = ("shared", ("cta", (event.address - SHARED_BASE) // SHARED_WINDOW))
    else:
        spaces = ("global",) if "GLOBAL" in tags else ("other",)
    return Record(
        agent.index,
        agent.step,
        lanes,
        event,
        "W" in tags,
        proxy,
        event.order is None,
        "CPASYNC" in tags,
        "WEAK" not in tags,
        agent.place[2],
        spaces,
        position=len(m.trace) - 1,
    )


def entering(agent: Agent, event: Event) -> None:
    """A fence restricted to a space orders the later accesses to it (9.7.13.4)."""
    if not agent.spaces:
        return
    for space in _spaces(event):
        know = agent.spaces.pop(space, None)
        if know is not None:
            agent.learn(know)


def _spaces(event: Event) -> tuple[object, ...]:
    if "SHARED" in event.tags:
        return ("shared", ("cta", (event.address - SHARED_BASE) // SHARED_WINDOW))
    return ("global",)


def outlives(m: Machine, agent: Agent, event: Event, thing: Record) -> None:
    """Remembers what must be over before a CTA ends: an access to another CTA's shared memory (UB502), and what a bulk
    copy writes to that of its own (UB504).
    """
    if "SHARED" not in event.tags:
        return
    if thing.asynchronous and thing.write and thing.proxy == "ASYNC":
        m.copies.append((thing, event))
    if not m.program.clustered:
        return
    owner = (event.address - SHARED_BASE) // SHARED_WINDOW
    if owner != agent.place[2]:
        from mcheck.protocol.mbarriers import started

        m.remote[owner, agent.index, id(event.op)] = (thing, event)
        started(m, agent, owner, event.op)


# --- ld and st ----------------------------------------------------------------------------------------------


def _footprints(m: Machine, agent: Agent, op: Op) -> list[Footprint] | None:
    """The ranges of a load or a store with constant addresses, found once per program."""
    key = (agent.index, agent.pc)
    found = m.setup.footprints.get(key, ())
    if found != ():
        return found  # type: ignore[return-value]
    lanes = range(len(agent.lanes))
    constant = all(isinstance(lane_op(m, agent, k).address, Const) for k in lanes)  # type: ignore[attr-defined]
    result: list[Footprint] | None = None
    if constant and getattr(op, "sem", "") == "weak":
        events = [(e, e.address, e.size, k) for k in lanes for e in m.emit(agent, k, lane_op(m, agent, k))]
        result = _by_scalar(events, len(agent.lanes))
    m.setup.footprints[key] = result
    return result


def _by_scalar(events: list[tuple[Event, int, int, int]], lanes: int) -> list[Footprint]:
    """One footprint per scalar of a vector, or one for all where the lanes' vectors follow each other."""
    width = len(events) // lanes
    if width == 1:
        return coalesced(events)
    whole = [(events[k * width][0], events[k * width][1], width * events[k * width][2], k) for k in range(lanes)]
    if all(events[k * width + j][1] == whole[k][1] + j * whole[k][0].size for k in range(lanes) for j in range(width)):
        merged = coalesced(whole)
        if len(merged) == 1 and lanes > 1:
            return merged
    out: list[Footprint] = []
    for j in range(width):
        out += coalesced([events[k * width + j] for k in range(lanes)])
    return out


def _races_between_lanes(m: Machine, agent: Agent, found: list[Footprint], op: Op) -> None:
    """Lanes of one instruction that write common bytes race with each other."""
    if agent.single:
        return
    from mcheck.protocol.lanes import lane_conflict

    lane_conflict(m, agent, found, op)


@does(ops.Load)
def load(m: Machine, agent: Agent, op: Op) -> None:
    """``ld``: weak ones return the latest value, strong ones whatever they may see."""
    assert isinstance(op, ops.Load)
    if not runs(m, agent, op):
        return
    if op.sem != "weak":
        spun = (
            spun_value(agent.code, m.program.threads[agent.threads[0]].labels, agent.pc) if op.guard is None else None
        )
        value = m.known(agent, spun[1]) if spun is not None else None
        words.load(m, agent, op, (spun[0], value) if spun is not None and value is not None else None)
        agent.pc += 1
        return
    found = _footprints(m, agent, op)
    if found is None:
        events = [
            (e, e.address, e.size, k) for k in range(len(agent.lanes)) for e in m.emit(agent, k, lane_op(m, agent, k))
        ]
        found = _by_scalar(events, len(agent.lanes))
    for event, low, high, lanes in found:
        entering(agent, event)
        record = record_of(m, agent, event, lanes)
        touch(m, record, low, high, agent.view())
        outlives(m, agent, event, record)
    _results(m, agent, op)
    agent.pc += 1


def _results(m: Machine, agent: Agent, op: ops.Load) -> None:
    wanted = m.setup.needed[agent.threads[0]]
    names = [(k, reg.name) for k, reg in enumerate(op.dsts) if reg is not None]
    for k, name in names:
        for lane in range(len(agent.lanes)):
            raw: int | None = None
            if name in wanted:
                lane_load = lane_op(m, agent, lane)
                assert isinstance(lane_load, ops.Load)
                address = m.term(agent, lane, lane_load.address)
                size = _size(op.type)
                if isinstance(address, int):
                    raw = m.memory.load(address + k * size, size)
            m.set(agent, lane, name, op.type, raw)


def _size(type_name: str) -> int:
    from mcheck.graph.terms import type_size

    return type_size(type_name)


@does(ops.Store)
def store(m: Machine, agent: Agent, op: Op) -> None:
    """``st``."""
    assert isinstance(op, ops.Store)
    if not runs(m, agent, op):
        return
    agent.effects += 1
    if op.sem != "weak":
        words.store(m, agent, op)
        agent.pc += 1
        return
    found = _footprints(m, agent, op)
    if found is None:
        events = [
            (e, e.address, e.size, k) for k in range(len(agent.lanes)) for e in m.emit(agent, k, lane_op(m, agent, k))
        ]
        found = _by_scalar(events, len(agent.lanes))
    _races_between_lanes(m, agent, found, op)
    for event, low, high, lanes in found:
        entering(agent, event)
        record = record_of(m, agent, event, lanes)
        touch(m, record, low, high, agent.view())
        outlives(m, agent, event, record)
    size = _size(op.type)
    for lane in range(len(agent.lanes)):
        mine = lane_op(m, agent, lane)
        assert isinstance(mine, ops.Store)
        address = m.term(agent, lane, mine.address)
        assert isinstance(address, int)
        for k, src in enumerate(mine.srcs):
            value = m.term(agent, lane, src)
            m.memory.store(address + k * size, size, value if isinstance(value, int) else None)
            words.weakly_written(m, agent, address + k * size)
    agent.pc += 1


# --- asynchronous operations ----------------------------------------------------------------------------------


def issue_view(agent: Agent, op: Op) -> View:
    """What comes before the memory operations: all before the issue; for wgmma all before the last wgmma.fence."""
    if isinstance(op, ops.Wgmma):
        return agent.wgmma or View(agent.index, -1, agent.single, [0] * len(agent.causal), {}, {})
    return agent.view()


@does(
    ops.BulkCopy, ops.TensorCopy, ops.AsyncStore, ops.Wgmma, ops.CpAsync, ops.CpAsyncArrive, ops.Prefetch,
    ops.TensormapReplace, ops.TensormapCopyFence,
)  # fmt: skip
def asynchronous(m: Machine, agent: Agent, op: Op) -> None:
    """Issues an asynchronous operation: its accesses are outside program order, its signals are on their way."""
    if not runs(m, agent, op):
        return
    agent.effects += 1
    per_lane = isinstance(op, ops.CpAsync | ops.CpAsyncArrive | ops.Wgmma)
    lanes = range(len(agent.lanes)) if per_lane else range(1)
    emitted = [m.emit(agent, k, lane_op(m, agent, k)) for k in lanes]
    if isinstance(op, ops.CpAsyncArrive):
        from mcheck.protocol.mbarriers import increment

        increment(m, agent, op, emitted)
    view = issue_view(agent, op)
    if isinstance(op, ops.Wgmma):
        for e in emitted[0]:
            agent.wgmma_numbers[e.uid] = len(agent.wgmma_reads)
        agent.wgmma_reads.append([])
    width = len(emitted[0])
    for j in range(width):
        column = [(emitted[k][j], emitted[k][j].address, emitted[k][j].size, k) for k in lanes]
        if any(len(e) != width for e in emitted):
            raise Split([(t,) for t in agent.threads])
        event = column[0][0]
        if event.size:
            _memory(m, agent, column, view)
        elif "F" in event.tags:
            from mcheck.protocol.fences import proxy_fence_event

            proxy_fence_event(m, agent, event)
    if not agent.single and isinstance(op, ops.CpAsync):
        writes = [
            (e[j], e[j].address, e[j].size, k) for k, e in enumerate(emitted) for j in range(width) if "W" in e[j].tags
        ]
        _races_between_lanes(m, agent, coalesced(writes), op)
    _values(m, emitted)
    _send(m, agent, emitted)
    agent.pc += 1


def _memory(m: Machine, agent: Agent, column: list[tuple[Event, int, int, int]], view: View) -> None:
    """The accesses of one event of all lanes."""
    for event, low, high, lanes in coalesced(column):
        ordered = event.order is not None
        record = record_of(m, agent, event, lanes)
        if not ordered:
            record.bars = _bars_of(m, agent, event)
        if isinstance(event.op, ops.Wgmma):
            record.of_warp = True
            agent.wgmma_reads[-1].append(record)
        touch(m, record, low, high, agent.view() if ordered else view)
        outlives(m, agent, event, record)
        for e, address, _, lane in column:
            if low <= address < high:
                agent.of_event[lane, e.uid] = record


def _bars_of(m: Machine, agent: Agent, event: Event) -> tuple[int, ...]:
    """The components of the mbarriers that this access's completion signals."""
    op = event.op
    if getattr(op, "mbar", None) is None:
        return ()
    state = agent.lanes[0]
    targets = []
    for memory, signal in state.tracked[agent.tracked[0] if agent.tracked else 0 :]:
        if memory == event.uid:
            step = state.events[signal[1]].mbarrier
            if step is not None and step.address in m.mbarriers:
                targets.append(m.mbarriers[step.address].seen)
    return tuple(targets)


def _values(m: Machine, emitted: list[list[Event]]) -> None:
    """Moves the data, as if the operation completed at once: only a race could tell."""
    for events in emitted:
        read: dict[Uid, Bytes] = {}
        for event in events:
            if not event.size:
                continue
            if "R" in event.tags:
                read[event.uid] = m.memory.read(event.address, event.size)
            elif "W" in event.tags:
                m.memory.write(event.address, *bytes_of(event.value, event.size, read))
                words.overwritten(m, event.address, event.size)


Bytes = tuple[bytes, bytes]
"""Bytes, and a mask of those that are known."""


def bytes_of(term: Term, size: int, read: dict[Uid, Bytes]) -> Bytes:
    """The bytes of a term once the reads of its operation have returned: what is merely moved stays known in parts."""
    if not isinstance(term, int):
        if term[0] == "e" and term[1] in read:
            return read[term[1]]
        if term[0] == "cat":
            parts = [bytes_of(part, width, read) for part, width in term[1]]
            return b"".join(p[0] for p in parts), b"".join(p[1] for p in parts)
        if term[0] == "slice" and term[1][0] == "e" and term[1][1] in read:
            data, known = read[term[1][1]]
            return data[term[2] : term[2] + term[3]], known[term[2] : term[2] + term[3]]
    value = value_of(term, read)
    if value is None:
        return bytes(size), bytes(size)
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little"), b"\1" * size


def value_of(term: Term, read: dict[Uid, Bytes]) -> int | None:
    """The value of a term once the reads of its operation have returned, ``None`` if it is not known."""

    def result(uid: Uid) -> int:
        found = read.get(uid)
        if found is None or 0 in found[1]:
            raise Unknown
        return int.from_bytes(found[0], "little")

    def part(whole: Term, offset: int, size: int) -> int:
        data, known = (x[offset : offset + size] for x in bytes_of(whole, offset + size, read))
        if 0 in known:
            raise Unknown
        return int.from_bytes(data, "little")

    try:
        return evaluate(term, result, part)
    except Unknown:
        return None


def _send(m: Machine, agent: Agent, emitted: list[list[Event]]) -> None:
    """Puts the completion signals on their way; equal ones of several lanes travel together."""
    from mcheck.protocol.mbarriers import announced

    by_address: dict[tuple[int, int], Signal] = {}
    for lane, events in enumerate(emitted):
        state = agent.lanes[lane]
        signals = [e for e in events if e.mbarrier is not None and e.order is None]
        if not signals:
            continue
        while len(agent.tracked) <= lane:
            agent.tracked.append(0)
        new = state.tracked[agent.tracked[lane] :]
        agent.tracked[lane] = len(state.tracked)
        for number, event in enumerate(signals):
            step = event.mbarrier
            assert step is not None
            signal = by_address.get((step.address, number))
            if signal is None:
                if not announced(m, agent, step.address, event):
                    continue
                key = (agent.index, agent.step, number)
                signal = by_address[step.address, number] = Signal(
                    key, agent.index, agent.step, step.address, step.kind, step.tx or 0, 0, agent.now(), event, []
                )
                m.signals[key] = signal
                m.queue.append(key)
            signal.count += 1
            for memory, uid in new:
                if uid == event.uid:
                    record = agent.of_event.get((lane, memory))
                    if record is not None and (not signal.records or record not in signal.records[-32:]):
                        signal.records.append(record)


@does(ops.Commit, ops.WaitGroup)
def groups(m: Machine, agent: Agent, op: Op) -> None:
    """Groups belong to the thread that issued their operations (Q17), those of wgmma to its warp."""
    if not runs(m, agent, op):
        return
    assert isinstance(op, ops.Commit | ops.WaitGroup)
    of_warp = op.family == "wgmma"
    if of_warp and isinstance(op, ops.WaitGroup) and warps.together(m, agent, op) is None:
        return
    numbers: set[int] = set()
    for lane in range(len(agent.lanes)):
        m.emit(agent, lane, op)
        state = agent.lanes[lane]
        while len(agent.completed) <= lane:
            agent.completed.append(0)
        for memory, _ in state.completes[agent.completed[lane] :]:
            if of_warp and memory in agent.wgmma_numbers:
                numbers.add(agent.wgmma_numbers[memory])
            record = agent.of_event.get((lane, memory))
            if record is not None and (agent.index, agent.step) not in record.done and not _waited(record, agent):
                record.done.append((agent.index, agent.step))
        agent.completed[lane] = len(state.completes)
        if isinstance(op, ops.WaitGroup):
            _forget(state, op)
    if numbers:
        warps.waited(m, agent, numbers)
    agent.pc += 1


def _waited(record: Record, agent: Agent) -> bool:
    return any(a == agent.index for a, _ in record.done)


def _forget(state: object, op: ops.WaitGroup) -> None:
    """Groups that were waited for in full need not be waited for again."""
    from mcheck.explore.state import State

    assert isinstance(state, State)
    pending = getattr(op.pending, "value", None)
    family = state.groups.get(op.family)
    if family is None or op.read or not isinstance(pending, int):
        return
    keep = len(family.committed) - pending
    if keep > 0:
        family.committed = family.committed[keep:]
