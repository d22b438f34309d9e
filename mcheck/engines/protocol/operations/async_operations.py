"""Asynchronous operations: their accesses, which are outside program order, their signals, and their groups."""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.effects.ranges import join_ranges
from mcheck.effects.site import widened
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.executors import executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.operations import aligned_instructions, tracked_locations
from mcheck.engines.protocol.operations import wgmma as warps
from mcheck.engines.protocol.operations.access_records import make_record
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.operations.lane_accesses import coalesce_copy, coalesce_tensor_move, lanes_share_operation
from mcheck.engines.protocol.operations.mbarrier_updates import add_pending_arrival, check_target
from mcheck.engines.protocol.operations.memory_accesses import (
    check_lane_races,
    enter_footprints,
    move_data,
    operation_of_lane,
    reads_unwritten,
)
from mcheck.engines.protocol.operations.races import enter_accesses
from mcheck.engines.protocol.state.access_history import LaneOwners, Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.footprints import LaneBytes as SpreadBytes
from mcheck.engines.protocol.state.footprints import coalesce
from mcheck.engines.protocol.state.sync_objects import Signal
from mcheck.events.emit import Stop
from mcheck.events.event import Event
from mcheck.events.thread_state import State
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


@executes(
    ops.BulkCopy, ops.TensorCopy, ops.AsyncStore, ops.Wgmma, ops.CpAsync, ops.CpAsyncArrive, ops.Prefetch,
    ops.TensormapReplace, ops.TensormapCopyFence, ops.TensorCore, ops.TensorMove, ops.TensorCommit,
)  # fmt: skip
def issue_operation(m: Machine, agent: Agent, op: Op) -> None:
    """Issue an asynchronous operation: its accesses are outside program order, its signals are in flight."""
    if not evaluate_guard(m, agent, op):
        return
    agent.effect_count += 1
    if isinstance(op, ops.Wgmma):
        aligned_instructions.check_wgmma(m, agent, op)
        agent.wgmma_fenced = False
    lanes = range(len(agent.lanes))
    whole = None
    if isinstance(op, ops.CpAsync) or (isinstance(op, ops.BulkCopy) and not agent.is_single_thread):
        whole = coalesce_copy(m, agent, op)
    elif isinstance(op, ops.TensorMove):
        whole = coalesce_tensor_move(m, agent, op)
    if whole is not None or (isinstance(op, ops.Wgmma) and lanes_share_operation(m, agent)):
        lanes = range(len(agent.representatives))  # the representatives
    try:
        emitted = [m.emit(agent, k, operation_of_lane(m, agent, k)) for k in lanes]
    except Stop as stop:
        if agent.is_single_thread:
            _enter_reads_before_stop(m, agent, op, list(stop.before))
        raise
    width = len(emitted[0])
    if any(len(events) != width for events in emitted):
        raise Split([(t,) for t in agent.threads])
    issues = _enter_issue(m, agent, op, emitted)
    previous: Record | None = None
    alike = _group_similar_accesses(m, op, emitted) if whole is None else {}
    for j in range(width):
        column = [(emitted[k][j], emitted[k][j].address, emitted[k][j].size, k) for k in lanes]
        event = column[0][0]
        if j in alike:
            if alike[j]:
                _enter_as_one(m, agent, [[events[i] for events in emitted] for i in alike[j]], issues, j)
        elif event.size:
            if whole is not None and reads_unwritten(m, agent, event):
                continue
            own = None if whole is None else whole[Tag.W in event.tags]
            previous = _enter_accesses(m, agent, column, issues, previous, j, own)
        elif Tag.F in event.tags:
            m.add_event(agent, event, part=min(j, 7))
        elif Tag.PIPE in event.tags or Tag.GROUPWAIT in event.tags:
            _enter_completion_marker(m, agent, event, emitted)
    if whole is not None and isinstance(op, ops.CpAsync | ops.BulkCopy):
        _copy_lane_data(m, agent, op)
    elif not isinstance(op, ops.TensorCore | ops.TensorMove):
        move_data(m, emitted)
    _send_signals(m, agent, emitted, issues, len(agent.lanes) if whole is not None else None)
    agent.pc += 1


def _enter_reads_before_stop(m: Machine, agent: Agent, op: Op, events: list[Event]) -> None:
    """Enter what an undefined operation read before it stopped, such as a tensor map: it may race all the same."""
    issues = _enter_issue(m, agent, op, [events])
    for j, event in enumerate(events):
        if event.size:
            _enter_accesses(m, agent, [(event, event.address, event.size, 0)], issues, None, j)


def _enter_completion_marker(m: Machine, agent: Agent, marker: Event, emitted: list[list[Event]]) -> None:
    """Enter the event at which the accesses of an operation on tensor memory complete."""
    edges = []
    for lane in range(len(agent.representatives)):
        events = emitted[lane if lane < len(emitted) else 0]
        records = {id(r): r for e in events if e.size and (r := agent.records_by_event.get((lane, e.uid))) is not None}
        mask = 0
        for record in records.values():
            mask |= record.entries[lane if lane < len(record.entries) else 0].bit
            if Tag.PIPE in marker.tags:
                agent.pipe_records.append(record)
        edges.append({"complete": mask} if mask else {})
    m.add_event(agent, marker, part=7, edges=edges)


def _group_similar_accesses(m: Machine, op: Op, emitted: list[list[Event]]) -> dict[int, list[int]]:
    """Group the accesses of a copy or a wgmma that differ in their bytes only: the first index of each group maps to
    all its indices, the others to none.
    """
    copies = isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.reduce is None
    tensor = isinstance(op, ops.TensorCore)
    if not (copies or tensor or isinstance(op, ops.Wgmma)) or (len(emitted) > 1 and not isinstance(op, ops.Wgmma)):
        return {}
    first: dict[object, int] = {}
    out: dict[int, list[int]] = {}
    followed = bool(m.setup.tracked_words)
    for j, event in enumerate(emitted[0]):
        if not event.size or event.order is not None or event.rmw is not None or Tag.TMAP in event.tags:
            continue
        if len(emitted) > 1 and any(e[j].address != event.address or e[j].size != event.size for e in emitted):
            return {}
        if m.mbarriers_in(event.address, event.address + event.size) or (
            followed and tracked_locations.is_tracked(m, event)
        ):
            continue
        if m.setup.tensor_maps and m.setup.touches_map(event.address, event.size):
            continue
        key = event.tags, event.block, event.size
        start = first.setdefault(key, j)
        if (event.address - emitted[0][start].address) % event.size and not tensor:
            return {}
        out.setdefault(start, []).append(j)
        if j != start:
            out[j] = []
    return out


def _enter_as_one(
    m: Machine, agent: Agent, columns: list[list[Event]], issues: tuple[Live, ...], number: int
) -> None:  # fmt: skip
    """Enter accesses of one asynchronous operation that differ in their bytes only as one event."""
    event = columns[0][0]
    if reads_unwritten(m, agent, event):
        return
    wgmma = Tag.WGMMA in event.tags
    edges = [
        {"issue": warps.find_fences(m, agent, k) if wgmma else issues[k].bit} for k in range(len(agent.representatives))
    ]
    record = make_record(m, agent, event, None)
    ranges = join_ranges((column[0].address, column[0].size) for column in columns)
    enter_accesses(m, agent, [(record, at, at + size) for at, size in ranges], edges, part=min(number, 7))
    record.mbarrier_clocks = _find_signalled_mbarriers(m, agent, event)
    if wgmma:
        agent.open_wgmma.append(record)
    for column in columns:
        for lane, e in enumerate(column):
            agent.records_by_event[lane, e.uid] = record


def _enter_issue(m: Machine, agent: Agent, op: Op, emitted: list[list[Event]]) -> tuple[Live, ...]:
    """Enter the issue, and the immediate effect of cp.async.mbarrier.arrive on its object."""
    issues: tuple[Live, ...] = ()
    for j, event in enumerate(emitted[0]):
        if Tag.INCREMENT in event.tags:
            add_pending_arrival(m, agent, op, [events[j] for events in emitted])
        elif Tag.ISSUE in event.tags:
            issues = m.add_event(agent, event, part=1)
    return issues


def _enter_accesses(
    m: Machine, agent: Agent, column: list[tuple[Event, int, int, int]], issues: tuple[Live, ...],
    previous: Record | None, number: int, whole: SpreadBytes | None = None,
) -> Record:  # fmt: skip
    """Enter the accesses of one event of all lanes; ``whole`` are the bytes of all lanes where they form one access."""
    records: list[Record] = []
    event = column[0][0]
    ordered = event.order is not None
    edges: list[dict[str, int]] = []
    for k in range(len(agent.representatives)):
        own: dict[str, int] = {}
        if not ordered:
            own["issue"] = warps.find_fences(m, agent, k) if Tag.WGMMA in event.tags else issues[k].bit
        if event.rmw is not None and previous is not None:
            own["rmw"] = own["data"] = previous.entries[k].bit
        edges.append(own)
    if whole is not None:
        record = make_record(m, agent, event, whole.lanes)
        enter_accesses(m, agent, [(record, low, high) for low, high in whole.ranges], edges, part=min(number, 7))
        records.append(record)
    elif len(column) == 1 and tracked_locations.is_tracked(m, event):
        record = tracked_locations.access_asynchronously(m, agent, event, edges, min(number, 7))
        records.append(record)
    else:
        footprints = coalesce(column)
        records = enter_footprints(m, agent, footprints, edges, part=min(number, 7))
        if Tag.W in event.tags:
            check_lane_races(m, agent, footprints, event.op, records)
    for record in records:
        if not ordered:
            record.mbarrier_clocks = _find_signalled_mbarriers(m, agent, record.event)
        if Tag.WGMMA in event.tags:
            agent.open_wgmma.append(record)
        for e, address, _, lane in column:
            if record.lanes is None or not isinstance(record.lanes, int) or record.lanes == lane:
                start = record.event.address if not isinstance(record.lanes, tuple) else record.lanes[0]
                if isinstance(record.lanes, tuple | LaneOwners) or start == address:
                    agent.records_by_event[lane, e.uid] = record
    return records[-1]


def _find_signalled_mbarriers(m: Machine, agent: Agent, event: Event) -> tuple[int, ...]:
    """The clock components of the mbarriers that the completion of this access signals."""
    op = event.op
    if getattr(op, "mbar", None) is None:
        return ()
    state = agent.lanes[0]
    targets = []
    for memory, signal in state.tracked[agent.tracked_counts[0] if agent.tracked_counts else 0 :]:
        if memory == event.uid:
            step = state.events[signal[1]].mbarrier
            if step is not None and step.address in m.mbarriers:
                targets.append(m.mbarriers[step.address].clock_index)
    return tuple(targets)


def _copy_lane_data(m: Machine, agent: Agent, op: ops.CpAsync | ops.BulkCopy) -> None:
    """Copy the data of all lanes of a copy, of which only the representatives have events."""
    assert isinstance(op.size, Const)
    size = op.size.value
    places = [(m.evaluate(agent, k, op.dst), m.evaluate(agent, k, op.src)) for k in range(len(agent.lanes))]
    read = [(dst, m.memory.read(widened(src), size)) for dst, src in places if isinstance(src, int)]
    for dst, (data, known) in read:
        assert isinstance(dst, int)
        m.memory.write(widened(dst), data, known)


def _send_signals(
    m: Machine, agent: Agent, emitted: list[list[Event]], issues: tuple[Live, ...], lanes: int | None = None
) -> None:
    """Put the completion signals in flight; equal signals of several lanes travel together. ``lanes``: how many those
    stand for that have events, where not each has its own.
    """
    by_address: dict[tuple[int, int], Signal] = {}
    for lane, events in enumerate(emitted):
        state = agent.lanes[lane]
        signals = [e for e in events if e.mbarrier is not None and e.order is None]
        if not signals:
            continue
        while len(agent.tracked_counts) <= lane:
            agent.tracked_counts.append(0)
        new = state.tracked[agent.tracked_counts[lane] :]
        agent.tracked_counts[lane] = len(state.tracked)
        for number, event in enumerate(signals):
            step = event.mbarrier
            assert step is not None
            signal = by_address.get((step.address, number))
            if signal is None:
                if not check_target(m, agent, step.address, event):
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
                    agent.current_time(),
                    agent.known_time(),
                    event,
                    [],
                    issues,
                )
                m.signals[key] = signal
                m.queue.append(key)
            signal.count += 1
            for memory, uid in new:
                if uid == event.uid:
                    record = agent.records_by_event.get((lane, memory))
                    if record is not None and (not signal.records or record not in signal.records[-32:]):
                        signal.records.append(record)
    if lanes is not None:
        for signal in by_address.values():
            signal.count = lanes
    if isinstance(agent.code[agent.pc], ops.TensorCommit):
        _attach_pipe_records(agent, list(by_address.values()))


def _attach_pipe_records(agent: Agent, signals: list[Signal]) -> None:
    """Attach to a commit's signals everything that the thread has issued to its pipe; merged records are listed
    once.
    """
    agent.pipe_records = list({record.event_set: record for record in agent.pipe_records}.values())
    for signal in signals:
        signal.records = list(agent.pipe_records)
    for state in agent.lanes:
        state.piped.clear()


@executes(ops.Commit, ops.WaitGroup)
def close_or_wait_groups(m: Machine, agent: Agent, op: Op) -> None:
    """Execute a commit or a wait of groups. Groups belong to the thread that issued their operations (Q17), those of
    wgmma to its warp.
    """
    if not evaluate_guard(m, agent, op):
        return
    assert isinstance(op, ops.Commit | ops.WaitGroup)
    of_warp = op.family == "wgmma"
    number = 0
    if of_warp and isinstance(op, ops.WaitGroup):
        number = max(len(agent.wgmma_groups) - (m.known_value(agent, op.pending) or 0), 0)
        if not agent.warp_synchronised:
            aligned_instructions.check_wgmma(m, agent, op)
        if not aligned_instructions.synchronise_warp(m, agent, op):
            return
        warps.await_commits(m, agent, number)
    elif of_warp:
        warps.commit_group(m, agent)
    finished: list[int] = [0] * len(agent.representatives)
    event: Event | None = None
    for lane in range(len(agent.lanes)):
        events = m.emit(agent, lane, op)
        event = next((e for e in events if {Tag.GROUPWAIT, Tag.PROXYWAIT} & e.tags), event)
        state = agent.lanes[lane]
        while len(agent.completed_counts) <= lane:
            agent.completed_counts.append(0)
        for memory, _ in state.completes[agent.completed_counts[lane] :]:
            record = agent.records_by_event.get((lane, memory))
            if record is not None:
                if lane < len(finished):
                    finished[lane] |= record.entries[lane if lane < len(record.entries) else 0].bit
                if not any(a == agent.index for a, _ in record.waits):
                    record.waits.append((agent.index, agent.step))
        agent.completed_counts[lane] = len(state.completes)
        if isinstance(op, ops.WaitGroup):
            _drop_waited_groups(state, op)
    if of_warp:
        mine = warps.complete_groups(m, agent, number)
        finished = [mine for _ in finished]
    if event is not None:
        m.add_event(agent, event, edges=[{"complete": mask} if mask else {} for mask in finished])
    agent.pc += 1


def _drop_waited_groups(state: State, op: ops.WaitGroup) -> None:
    """Drop groups that have been waited for in full."""
    pending = getattr(op.pending, "value", None)
    family = state.groups.get(op.family)
    if family is None or op.read or op.restrict or not isinstance(pending, int):
        return
    keep = len(family.committed) - pending
    if keep > 0:
        family.committed = family.committed[keep:]
