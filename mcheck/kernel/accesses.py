"""Loads, stores and the memory operations of asynchronous instructions."""

from __future__ import annotations

from mcheck.events.emit import Stop
from mcheck.events.state import State
from mcheck.graph.event import Event
from mcheck.graph.tags import Tag
from mcheck.graph.terms import Uid, type_size
from mcheck.kernel import aligned, warps, words
from mcheck.kernel.agent import Agent
from mcheck.kernel.agents import Split
from mcheck.kernel.control import runs
from mcheck.kernel.footprints import Bytes as SpreadBytes
from mcheck.kernel.footprints import coalesced
from mcheck.kernel.history import Owners, Record
from mcheck.kernel.lanes import lane_conflict
from mcheck.kernel.machine import Machine, does
from mcheck.kernel.mbarriers import announced, increment
from mcheck.kernel.objects import Signal
from mcheck.kernel.polling import spun_value
from mcheck.kernel.races import touch
from mcheck.kernel.records import record_of
from mcheck.kernel.setup import Footprint
from mcheck.kernel.spread import copied, moved, shared, spread_of
from mcheck.kernel.values import Bytes, bytes_of
from mcheck.plans.ranges import joined
from mcheck.plans.site import widened
from mcheck.program import ops
from mcheck.program.expr import Const
from mcheck.program.ops import Op
from mcheck.program.registers import registers_of
from mcheck.views.entries import Entry as Live


def lane_op(m: Machine, agent: Agent, lane: int) -> Op:
    """The present operation of one lane."""
    return m.program.threads[agent.threads[lane]].code[agent.pc]


# --- records ----------------------------------------------------------------------------------------------


def access(
    m: Machine, agent: Agent, found: list[Footprint], edges: list[dict[str, int]], *, part: int = 0
) -> list[Record]:
    """The accesses of one instruction: those that nothing but their bytes tells apart are one event."""
    groups: dict[tuple[object, ...], list[tuple[Record, int, int]]] = {}
    for event, low, high, lanes in found:
        record = record_of(m, agent, event, lanes)
        key = (event.tags, event.block, m.place_of(event, exact=False))
        groups.setdefault(key, []).append((record, low, high))
    for ranges in groups.values():
        if any(high > low for _, low, high in ranges):
            touch(m, agent, ranges, [dict(e) for e in edges], part=part)
    return [record for ranges in groups.values() for record, _, _ in ranges]


def depends(agent: Agent, names: list[str]) -> list[dict[str, int]]:
    """The address dependencies of each shown lane on the reads that these registers come from."""
    out = []
    for lane in range(len(agent.shown)):
        origin = agent.origin[lane]
        mask = 0
        for name in names if origin else ():
            mask |= origin.get(name, 0)
        out.append({"addr": mask} if mask else {})
    return out


# --- ld and st ----------------------------------------------------------------------------------------------


def _footprints(m: Machine, agent: Agent, op: Op) -> list[Footprint]:
    """The ranges of a weak load or store; those of constant addresses are found once per program."""
    key = (agent.index, agent.pc)
    known = m.setup.footprints.get(key, ())
    if known is None:
        return _lane_by_lane(m, agent)
    if known != ():
        return known  # type: ignore[return-value]
    lanes = range(len(agent.lanes))
    constant = all(isinstance(lane_op(m, agent, k).address, Const) for k in lanes)  # type: ignore[attr-defined]
    found = (_neighbours(m, agent, op) if constant else None) or _lane_by_lane(m, agent)
    m.setup.footprints[key] = found if constant else None
    return found


def _lane_by_lane(m: Machine, agent: Agent) -> list[Footprint]:
    """The ranges that the lanes access, each asked."""
    lanes = range(len(agent.lanes))
    events = [(e, e.address, e.size, k) for k in lanes for e in m.emit(agent, k, lane_op(m, agent, k))]
    return _by_scalar(events, len(lanes))


def _neighbours(m: Machine, agent: Agent, op: Op) -> list[Footprint] | None:
    """The range of lanes that access one place, or places that follow each other, in one object: what is in order for
    the first of them is in order for all.
    """
    assert isinstance(op, ops.Load | ops.Store)
    lanes = len(agent.lanes)
    width = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs)
    size = type_size(op.type) * width
    places = [lane_op(m, agent, k).address for k in range(lanes)]  # type: ignore[attr-defined]
    first, last = widened(places[0].value), widened(places[-1].value)
    step = size if last != first else 0
    if any(p.value != places[0].value + k * step for k, p in enumerate(places)):
        return None
    site = agent.emitters[0].site
    instance = site.at(first)
    if instance is None or instance is not site.at(last) or (width > 1 and (lanes == 1 or not step)):
        return None
    if last + size > instance.base + instance.object.size or first % size:
        return None
    event = m.emit(agent, 0, op)[0]
    low = event.address
    return [(event, low, low + size * (lanes if step else 1), (low, size) if step else None)]


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


def _races_between_lanes(m: Machine, agent: Agent, found: list[Footprint], op: Op, records: list[Record]) -> None:
    """Lanes of one instruction that write common bytes race with each other, if the model says so."""
    if agent.single:
        return
    lane_conflict(m, agent, found, op, records)


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
    if _all_at_once(m, agent, op):
        agent.pc += 1
        return
    found = _footprints(m, agent, op)
    if not words.plain_load(m, agent, op, found):
        access(m, agent, found, depends(agent, registers_of(op.address)))
        _results(m, agent, op)
    agent.pc += 1


def _all_at_once(m: Machine, agent: Agent, op: ops.Load | ops.Store) -> bool:
    """A load or a store of all lanes as one access, where it can be one (``mcheck.kernel.spread``)."""
    found = spread_of(m, agent, op)
    if found is None:
        return False
    if _conflicts_with_nothing(m, agent, found.event):
        return True
    record = record_of(m, agent, found.event, found.bytes.lanes)
    touch(m, agent, [(record, low, high) for low, high in found.bytes.ranges], [{} for _ in agent.shown])
    if isinstance(op, ops.Store):
        _store_all(m, agent, op, found.bytes)
    return True


def _conflicts_with_nothing(m: Machine, agent: Agent, event: Event) -> bool:
    """Whether an access reads an object that nothing writes."""
    if Tag.W in event.tags or not m.setup.unwritten:
        return False
    instance = agent.emitters[0].site.at(event.address)
    return instance is not None and instance.base in m.setup.unwritten


def _store_all(m: Machine, agent: Agent, op: ops.Store, where: SpreadBytes) -> None:
    """The values that all lanes store."""
    size = type_size(op.type)
    if all(isinstance(m.term(agent, 0, src), tuple) for src in op.srcs):  # data of which nothing is known
        for low, high in where.ranges:
            m.memory.write(low, bytes(high - low), bytes(high - low))
        return
    for lane in range(len(agent.lanes)):
        address = m.term(agent, lane, op.address)
        assert isinstance(address, int)
        for k, src in enumerate(op.srcs):
            value = m.term(agent, lane, src)
            m.memory.store(widened(address) + k * size, size, value if isinstance(value, int) else None)


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
                size = type_size(op.type)
                if isinstance(address, int):
                    raw = m.memory.load(widened(address) + k * size, size)
            m.set(agent, lane, name, op.type, raw)


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
    if _all_at_once(m, agent, op):
        agent.pc += 1
        return
    found = _footprints(m, agent, op)
    if words.plain_store(m, agent, op, found):
        agent.pc += 1
        return
    records = access(m, agent, found, depends(agent, registers_of(op.address)))
    _races_between_lanes(m, agent, found, op, records)
    size = type_size(op.type)
    for lane in range(len(agent.lanes)):
        mine = lane_op(m, agent, lane)
        assert isinstance(mine, ops.Store)
        address = m.term(agent, lane, mine.address)
        assert isinstance(address, int)
        for k, src in enumerate(mine.srcs):
            value = m.term(agent, lane, src)
            place = widened(address) + k * size
            m.memory.store(place, size, value if isinstance(value, int) else None)
            words.partly_written(m, agent, place, size)
    agent.pc += 1


@does(ops.Fill)
def fill(m: Machine, agent: Agent, op: Op) -> None:
    """``st.bulk``: a weak write of zeros."""
    if not runs(m, agent, op):
        return
    agent.effects += 1
    events = m.emit(agent, 0, op)
    found: list[Footprint] = [(e, e.address, e.address + e.size, None) for e in events if e.size]
    access(m, agent, found, [{} for _ in agent.shown])
    _values(m, [events])
    agent.pc += 1


# --- asynchronous operations ----------------------------------------------------------------------------------


@does(
    ops.BulkCopy, ops.TensorCopy, ops.AsyncStore, ops.Wgmma, ops.CpAsync, ops.CpAsyncArrive, ops.Prefetch,
    ops.TensormapReplace, ops.TensormapCopyFence, ops.TensorCore, ops.TensorMove, ops.TensorCommit,
)  # fmt: skip
def asynchronous(m: Machine, agent: Agent, op: Op) -> None:
    """Issues an asynchronous operation: its accesses are outside program order, its signals are on their way."""
    if not runs(m, agent, op):
        return
    agent.effects += 1
    if isinstance(op, ops.Wgmma):
        aligned.executed(m, agent, op)
        agent.fenced = False
    lanes = range(len(agent.lanes)) if isinstance(op, PER_LANE) else range(1)
    whole = None
    if isinstance(op, ops.CpAsync):
        whole = copied(m, agent, op)
    elif isinstance(op, ops.TensorMove):
        whole = moved(m, agent, op)
    if whole is not None or (isinstance(op, ops.Wgmma) and shared(m, agent)):
        lanes = range(len(agent.shown))  # those that stand for all
    try:
        emitted = [m.emit(agent, k, lane_op(m, agent, k)) for k in lanes]
    except Stop as stop:
        if agent.single:
            _begun(m, agent, op, list(stop.before))
        raise
    width = len(emitted[0])
    if any(len(events) != width for events in emitted):
        raise Split([(t,) for t in agent.threads])
    issues = _issue(m, agent, op, emitted)
    previous: Record | None = None
    alike = _alike(m, op, emitted) if whole is None else {}
    for j in range(width):
        column = [(emitted[k][j], emitted[k][j].address, emitted[k][j].size, k) for k in lanes]
        event = column[0][0]
        if j in alike:
            if alike[j]:
                _together(m, agent, [[events[i] for events in emitted] for i in alike[j]], issues, j)
        elif event.size:
            if whole is not None and _conflicts_with_nothing(m, agent, event):
                continue
            own = None if whole is None else whole[Tag.W in event.tags]
            previous = _memory(m, agent, column, issues, previous, j, own)
        elif Tag.F in event.tags:
            m.put(agent, event, part=min(j, 7))
        elif Tag.PIPE in event.tags or Tag.GROUPWAIT in event.tags:
            _after(m, agent, event, emitted)
    if whole is not None and isinstance(op, ops.CpAsync):
        _copy_all(m, agent, op)
    elif not isinstance(op, ops.TensorCore | ops.TensorMove):
        _values(m, emitted)
    _send(m, agent, emitted, issues)
    agent.pc += 1


def _begun(m: Machine, agent: Agent, op: Op, events: list[Event]) -> None:
    """What an operation that turns out to be undefined has read by then, as a tensor map: it may race all the same."""
    issues = _issue(m, agent, op, [events])
    for j, event in enumerate(events):
        if event.size:
            _memory(m, agent, [(event, event.address, event.size, 0)], issues, None, j)


PER_LANE = (
    ops.CpAsync, ops.CpAsyncArrive, ops.Wgmma, ops.AsyncStore, ops.TensorCore, ops.TensorMove, ops.TensorCommit,
)  # fmt: skip
"""Operations that each lane issues for itself; of all others an agent is one lane."""


def _after(m: Machine, agent: Agent, marker: Event, emitted: list[list[Event]]) -> None:
    """The marker to which the accesses of an operation on tensor memory complete."""
    edges = []
    for lane in range(len(agent.shown)):
        events = emitted[lane if lane < len(emitted) else 0]
        records = {id(r): r for e in events if e.size and (r := agent.of_event.get((lane, e.uid))) is not None}
        mask = 0
        for record in records.values():
            mask |= record.entries[lane if lane < len(record.entries) else 0].bit
            if Tag.PIPE in marker.tags:
                agent.piped.append(record)
        edges.append({"complete": mask} if mask else {})
    m.put(agent, marker, part=7, edges=edges)


def _alike(m: Machine, op: Op, emitted: list[list[Event]]) -> dict[int, list[int]]:
    """The places of the accesses of a copy or a wgmma that only their bytes tell apart: at the first of each kind the
    places of all, at the others nothing.
    """
    copies = isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.reduce is None
    tensor = isinstance(op, ops.TensorCore)
    if not (copies or tensor or isinstance(op, ops.Wgmma)) or (len(emitted) > 1 and not isinstance(op, ops.Wgmma)):
        return {}
    first: dict[object, int] = {}
    out: dict[int, list[int]] = {}
    followed = bool(m.setup.words)
    for j, event in enumerate(emitted[0]):
        if not event.size or event.order is not None or event.rmw is not None or Tag.TMAP in event.tags:
            continue
        if len(emitted) > 1 and any(e[j].address != event.address or e[j].size != event.size for e in emitted):
            return {}
        if m.mbarriers_in(event.address, event.address + event.size) or (followed and words.watched(m, event)):
            continue
        if m.setup.maps and m.setup.in_map(event.address, event.size):
            continue
        key = event.tags, event.block, event.size
        start = first.setdefault(key, j)
        if (event.address - emitted[0][start].address) % event.size and not tensor:
            return {}
        out.setdefault(start, []).append(j)
        if j != start:
            out[j] = []
    return out


def _together(
    m: Machine, agent: Agent, columns: list[list[Event]], issues: tuple[Live, ...], number: int
) -> None:  # fmt: skip
    """Accesses of one asynchronous operation that only their bytes tell apart: one event."""
    event = columns[0][0]
    if _conflicts_with_nothing(m, agent, event):
        return
    wgmma = Tag.WGMMA in event.tags
    edges = [{"issue": warps.fenced(m, agent, k) if wgmma else issues[k].bit} for k in range(len(agent.shown))]
    record = record_of(m, agent, event, None)
    ranges = joined((column[0].address, column[0].size) for column in columns)
    touch(m, agent, [(record, at, at + size) for at, size in ranges], edges, part=min(number, 7))
    record.bars = _bars_of(m, agent, event)
    if wgmma:
        agent.wgmma_open.append(record)
    for column in columns:
        for lane, e in enumerate(column):
            agent.of_event[lane, e.uid] = record


def _issue(m: Machine, agent: Agent, op: Op, emitted: list[list[Event]]) -> tuple[Live, ...]:
    """The issue, and what cp.async.mbarrier.arrive does to its object at once."""
    issues: tuple[Live, ...] = ()
    for j, event in enumerate(emitted[0]):
        if Tag.INCREMENT in event.tags:
            increment(m, agent, op, [events[j] for events in emitted])
        elif Tag.ISSUE in event.tags:
            issues = m.put(agent, event, part=1)
    return issues


def _memory(
    m: Machine, agent: Agent, column: list[tuple[Event, int, int, int]], issues: tuple[Live, ...],
    previous: Record | None, number: int, whole: SpreadBytes | None = None,
) -> Record:  # fmt: skip
    """The accesses of one event of all lanes; ``whole`` are the bytes of all of them, where they are one access."""
    records: list[Record] = []
    event = column[0][0]
    ordered = event.order is not None
    edges: list[dict[str, int]] = []
    for k in range(len(agent.shown)):
        own: dict[str, int] = {}
        if not ordered:
            own["issue"] = warps.fenced(m, agent, k) if Tag.WGMMA in event.tags else issues[k].bit
        if event.rmw is not None and previous is not None:
            own["rmw"] = own["data"] = previous.entries[k].bit
        edges.append(own)
    if whole is not None:
        record = record_of(m, agent, event, whole.lanes)
        touch(m, agent, [(record, low, high) for low, high in whole.ranges], edges, part=min(number, 7))
        records.append(record)
    elif len(column) == 1 and words.watched(m, event):
        record = words.asynchronous(m, agent, event, edges, min(number, 7))
        records.append(record)
    else:
        footprints = coalesced(column)
        records = access(m, agent, footprints, edges, part=min(number, 7))
        if isinstance(event.op, ops.AsyncStore) and Tag.W in event.tags:
            _races_between_lanes(m, agent, footprints, event.op, records)
    for record in records:
        if not ordered:
            record.bars = _bars_of(m, agent, record.event)
        if Tag.WGMMA in event.tags:
            agent.wgmma_open.append(record)
        for e, address, _, lane in column:
            if record.lanes is None or not isinstance(record.lanes, int) or record.lanes == lane:
                start = record.event.address if not isinstance(record.lanes, tuple) else record.lanes[0]
                if isinstance(record.lanes, tuple | Owners) or start == address:
                    agent.of_event[lane, e.uid] = record
    return records[-1]


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
            elif "W" in event.tags and not words.value_between(m, event):
                m.memory.write(event.address, *bytes_of(event.value, event.size, read))
                words.overwritten(m, event)


def _copy_all(m: Machine, agent: Agent, op: ops.CpAsync) -> None:
    """Moves the data of all lanes of a copy, of which only those that stand for all have events."""
    assert isinstance(op.size, Const)
    size = op.size.value
    places = [(m.term(agent, k, op.dst), m.term(agent, k, op.src)) for k in range(len(agent.lanes))]
    read = [(dst, m.memory.read(widened(src), size)) for dst, src in places if isinstance(src, int)]
    for dst, (data, known) in read:
        assert isinstance(dst, int)
        m.memory.write(widened(dst), data, known)


def _send(m: Machine, agent: Agent, emitted: list[list[Event]], issues: tuple[Live, ...]) -> None:
    """Puts the completion signals on their way; equal ones of several lanes travel together."""
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
                key = (agent.index, agent.step, len(by_address))
                signal = by_address[step.address, number] = Signal(
                    key,
                    agent.index,
                    agent.step,
                    step.address,
                    step.kind,
                    step.tx or 0,
                    0,
                    agent.now(),
                    event,
                    [],
                    issues,
                )
                m.signals[key] = signal
                m.queue.append(key)
            signal.count += 1
            for memory, uid in new:
                if uid == event.uid:
                    record = agent.of_event.get((lane, memory))
                    if record is not None and (not signal.records or record not in signal.records[-32:]):
                        signal.records.append(record)
    if isinstance(agent.code[agent.pc], ops.TensorCommit):
        _send_piped(agent, list(by_address.values()))


def _send_piped(agent: Agent, signals: list[Signal]) -> None:
    """A commit tells of all that the thread has ever issued to its pipe; what has become one needs no mention."""
    agent.piped = list({record.bits: record for record in agent.piped}.values())
    for signal in signals:
        signal.records = list(agent.piped)
    for state in agent.lanes:
        state.piped.clear()


@does(ops.Commit, ops.WaitGroup)
def groups(m: Machine, agent: Agent, op: Op) -> None:
    """Groups belong to the thread that issued their operations (Q17), those of wgmma to its warp."""
    if not runs(m, agent, op):
        return
    assert isinstance(op, ops.Commit | ops.WaitGroup)
    of_warp = op.family == "wgmma"
    number = 0
    if of_warp and isinstance(op, ops.WaitGroup):
        number = max(len(agent.wgmma_groups) - (m.known(agent, op.pending) or 0), 0)
        if not agent.met:
            aligned.executed(m, agent, op)
        if not aligned.together(m, agent, op):
            return
        warps.committed(m, agent, number)
    elif of_warp:
        warps.commit(m, agent)
    finished: list[int] = [0] * len(agent.shown)
    event: Event | None = None
    for lane in range(len(agent.lanes)):
        events = m.emit(agent, lane, op)
        event = next((e for e in events if Tag.GROUPWAIT in e.tags), event)
        state = agent.lanes[lane]
        while len(agent.completed) <= lane:
            agent.completed.append(0)
        for memory, _ in state.completes[agent.completed[lane] :]:
            record = agent.of_event.get((lane, memory))
            if record is not None:
                if lane < len(finished):
                    finished[lane] |= record.entries[lane if lane < len(record.entries) else 0].bit
                if not any(a == agent.index for a, _ in record.done):
                    record.done.append((agent.index, agent.step))
        agent.completed[lane] = len(state.completes)
        if isinstance(op, ops.WaitGroup):
            _forget(state, op)
    if of_warp:
        mine = warps.waited(m, agent, number)
        finished = [mine for _ in finished]
    if event is not None:
        m.put(agent, event, edges=[{"complete": mask} if mask else {} for mask in finished])
    agent.pc += 1


def _forget(state: State, op: ops.WaitGroup) -> None:
    """Groups that were waited for in full need not be waited for again."""
    pending = getattr(op.pending, "value", None)
    family = state.groups.get(op.family)
    if family is None or op.read or not isinstance(pending, int):
        return
    keep = len(family.committed) - pending
    if keep > 0:
        family.committed = family.committed[keep:]
