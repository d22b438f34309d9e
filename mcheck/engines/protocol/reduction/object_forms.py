"""Names of what a machine holds in canonical forms: the window's sets, synchronisation objects, accesses, memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable

from mcheck.base.declared_state import WRITTEN_OUT
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.engines.protocol.reduction.derived_forms import Part, inline_names, names
from mcheck.engines.protocol.reduction.form_builder import FormBuilder
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.access_history import History, LaneOwners, Lanes, Record
from mcheck.engines.protocol.state.memory_values import Memory
from mcheck.engines.protocol.state.sync_objects import (
    BarrierState,
    Mbarrier,
    PhaseId,
    PhaseOperations,
    Signal,
    SyncOperation,
    Word,
    Write,
)
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events.event import Event
from mcheck.semantics import mbarrier as state_machine

Dones = list[SyncOperation]
EventMasks = dict[object, int]


def _first(pair: tuple[object, ...]) -> int:
    assert isinstance(pair[0], int)
    return pair[0]


# --- values of every class ------------------------------------------------------------------------------------------

inline_names(by.SEQUENCE, "tuple($)")
inline_names(by.SET, "frozenset($)")
inline_names(WRITTEN_OUT, "repr($)")
inline_names(by.COUNT, "len($)")
inline_names(by.PRESENCE, "$ is not None")
inline_names(by.ADDRESS, "b.at($)")
inline_names(by.EVENTS, "b.names.name($)")
inline_names(by.ENTRIES, "b.events($)")
inline_names(by.TIME, "b.time($)")
inline_names(by.SOURCE, "$.op.span")


@names(by.EVENTS_BY_KEY)
def _events_by_key(b: FormBuilder, masks: EventMasks, _m: Machine, _: object) -> object:
    return frozenset((k, b.names.name(mask)) for k, mask in masks.items())


# --- operations on synchronisation objects ----------------------------------------------------------------------------


inline_names(by.SIGNALLED_OBJECT, "b.bars.get($)")
inline_names(by.FOOTPRINT, "$.op.span, $.size, b.at($.address)")


@names(by.STEP)
def _step(b: FormBuilder, step: int, d: SyncOperation, _: object) -> object:
    return bisect_left(b.steps.get(d.agent, []), step)


@names(by.PHASE)
def _phase(_b: FormBuilder, phase: int, _d: SyncOperation, present: int) -> object:
    return phase - present


@names(by.REORDERABLE)
def _reorderable(_b: FormBuilder, dones: Iterable[SyncOperation], _d: SyncOperation, _: object) -> object:
    return tuple((x.agent, x.kind, x.event.op.span) for x in dones)


def _all(_b: FormBuilder, dones: Iterable[SyncOperation]) -> Iterable[SyncOperation]:
    return dones


def _open(b: FormBuilder, dones: Iterable[SyncOperation]) -> Iterable[SyncOperation]:
    return b.open(dones)


def _in_lists(_b: FormBuilder, lists: dict[int, Dones]) -> Iterable[SyncOperation]:
    return (d for dones in lists.values() for d in dones)


# --- mbarriers ------------------------------------------------------------------------------------------------------


@names(by.MBARRIERS)
def _mbarriers(b: FormBuilder, bars: dict[int, Mbarrier], _m: Machine, _: object) -> object:
    return tuple(sorted(map(b.form, bars.values()), key=_first))


@names(by.MBARRIER_STATE)
def _mbarrier_state(b: FormBuilder, state: state_machine.State | None, bar: Mbarrier, _: object) -> object:
    if state is None:
        return None
    parity = (state.phase + b.addresses.rotation.parity_change(bar.address)) % 2
    return parity, state.expected, state.pending, state.tx


@names(by.INVALIDATION, live=lambda b, done: () if done is None else b.open([done]))
def _invalidation(b: FormBuilder, done: SyncOperation | None, bar: Mbarrier, _: object) -> object:
    return b.operations([done], 0) if done is not None and bar.state is None else ()


@names(by.LIFETIME_CHANGES, live=_open)
def _lifetime_changes(b: FormBuilder, dones: Dones, bar: Mbarrier, _: object) -> object:
    return b.operations(dones, 0) if bar.state is None else b.operations(b.open(dones), bar.state.phase)


@names(by.CURRENT_OPERATIONS, live=_all)
def _current_operations(b: FormBuilder, dones: Dones, bar: Mbarrier, _: object) -> object:
    return () if bar.state is None else b.operations(dones, bar.state.phase)


@names(by.CURRENT_OPEN_OPERATIONS, live=_open)
def _current_open_operations(b: FormBuilder, dones: Dones, bar: Mbarrier, _: object) -> object:
    return () if bar.state is None else b.operations(b.open(dones), bar.state.phase)


@names(by.EARLIER_OPERATIONS, live=_in_lists)
def _earlier_operations(b: FormBuilder, older: dict[int, Dones], bar: Mbarrier, _: object) -> object:
    if bar.state is None:
        return ()
    now = bar.state.phase
    return tuple((phase - now, b.operations(dones, now)) for phase, dones in older.items())


@names(by.PHASE_OPERATIONS)
def _phase_operations(b: FormBuilder, phases: dict[PhaseId, PhaseOperations], bar: Mbarrier, _: object) -> object:
    relative: Callable[[PhaseId], object] = bar.relative_phase if bar.state is not None else lambda when: when
    return tuple((relative(when), b.form(acts)) for when, acts in sorted(phases.items()))


@names(by.CURRENT_TIME)
def _current_time(b: FormBuilder, time: Vector, bar: Mbarrier, _: object) -> object:
    return () if bar.state is None else b.time(time)


@names(by.UNSEEN_PHASES)
def _unseen_phases(b: FormBuilder, _seen: dict[int, int], bar: Mbarrier, _: object) -> object:
    return () if bar.state is None else _find_unseen_phases(b, bar, bar.state.phase)


def _find_unseen_phases(b: FormBuilder, bar: Mbarrier, now: int) -> tuple[int, ...]:
    """Return, by agent, the first phase that it has not seen complete, relative to the present one."""
    seen = bar.last_phase_seen
    return tuple(max(0, bar.merged_phase + 1, seen.get(a.index, -1) + 1) - now for a in b.m.agents)


@names(by.COMPLETION_TIMES)
def _completion_times(b: FormBuilder, times: dict[int, Vector], bar: Mbarrier, _: object) -> object:
    if bar.state is None:
        return ()
    now = bar.state.phase
    oldest = min([0, *_find_unseen_phases(b, bar, now)])
    return tuple((p - now, b.time(v)) for p, v in sorted(times.items()) if p - now >= oldest)


@names(by.RECENT_PHASES)
def _recent_phases(_b: FormBuilder, phases: set[PhaseId], bar: Mbarrier, _: object) -> object:
    if bar.state is None:
        return ()
    now = bar.state.phase
    return frozenset(p - now for life, p in phases if life == bar.lifetime and p >= now - 1)


@names(by.FIRST_ARRIVALS)
def _first_arrivals(_b: FormBuilder, arrivals: dict[PhaseId, Event], bar: Mbarrier, _: object) -> object:
    if bar.state is None:
        return ()
    now = bar.state.phase
    return (
        frozenset(p - now for life, p in arrivals if life == bar.lifetime and p >= now),
        frozenset(
            (life, p - now, event.op.span)
            for (life, p), event in arrivals.items()
            if p > 0 and (life, p - 1) not in bar.waited_phases
        ),
    )


# --- barriers -------------------------------------------------------------------------------------------------------


@names(by.BARRIERS)
def _barriers(b: FormBuilder, barriers: dict[tuple[object, ...], BarrierState], _m: Machine, _: object) -> object:
    return tuple(b.form(x) for _, x in sorted(barriers.items(), key=lambda kv: repr(kv[0])))


@names(by.ARRIVALS, live=lambda _b, arrived: arrived.values())
def _arrivals(b: FormBuilder, arrived: dict[int, SyncOperation], x: BarrierState, _: object) -> object:
    return tuple((k, b.form(d, x.generation)) for k, d in arrived.items())


@names(by.REPEATED_ARRIVALS, live=_in_lists)
def _repeated_arrivals(b: FormBuilder, repeated: dict[int, Dones], x: BarrierState, _: object) -> object:
    return tuple((k, b.operations(dones, x.generation)) for k, dones in sorted(repeated.items()))


@names(by.ARRIVAL_EVENTS)
def _arrival_events(b: FormBuilder, arrivals: dict[int, tuple[int, Vector]], _x: BarrierState, _: object) -> object:
    return tuple((k, b.names.name(mask), b.time(v)) for k, (mask, v) in arrivals.items())


@names(by.PREVIOUS_ARRIVALS, live=_open)
def _previous_arrivals(b: FormBuilder, dones: Dones, x: BarrierState, _: object) -> object:
    return b.operations(b.open(dones), x.generation)


@names(by.BY_LANE)
def _by_lane(_b: FormBuilder, operands: dict[int, list[object]], _x: BarrierState, _: object) -> object:
    return repr(sorted(operands.items()))


@names(by.WARPS)
def _warps(_b: FormBuilder, warps: dict[tuple[int, int], set[int]], _x: BarrierState, _: object) -> object:
    return frozenset((warp, frozenset(inside)) for warp, inside in warps.items())


@names(by.FENCES, live=lambda _b, fences: (done for _, done, _ in fences))
def _fences(
    b: FormBuilder, fences: list[tuple[str, SyncOperation, tuple[Entry, ...]]], _m: Machine, _: object
) -> object:
    return tuple((scope, b.form(d, 0), b.events(es)) for scope, d, es in fences)


# --- tracked words --------------------------------------------------------------------------------------------------


@names(by.WORDS)
def _words(b: FormBuilder, words: dict[int, Word], _m: Machine, _: object) -> object:
    """Return the forms of words that loads and stores alone access."""
    return tuple(b.form(word) for _, word in sorted(words.items()))


@names(by.WRITES)
def _writes(b: FormBuilder, writes: list[Write], word: Word, _: object) -> object:
    """Return the writes that a read may still return or a store precede."""
    count, stale = len(writes), b.m.setup.max_stale_writes
    first = min(count - stale - 1, *(d.phase - 1 for d in b.open(word.operations)), count)
    return min(count, stale + 1), tuple(map(b.form, writes[max(first, 0) :]))


@names(by.WORD_OPERATIONS, live=_open)
def _word_operations(b: FormBuilder, dones: Dones, word: Word, _: object) -> object:
    return b.operations(b.open(dones), len(word.writes))


inline_names(by.FOUND_PLACE, "$ >= 0")


# --- signals --------------------------------------------------------------------------------------------------------


@names(by.SIGNALS)
def _signals(b: FormBuilder, signals: dict[object, Signal], _m: Machine, _: object) -> object:
    return tuple(map(b.form, signals.values()))


@names(by.QUEUE)
def _queue(_b: FormBuilder, queue: deque[tuple[int, int, int]], m: Machine, _: object) -> object:
    place = {key: n for n, key in enumerate(m.signals)}
    return tuple(place.get(key, -1) for key in queue)


inline_names(by.SIGNAL_KEY, "$[2]")


@names(by.COMPLETED_ACCESSES)
def _completed_accesses(b: FormBuilder, records: list[Record], _s: Signal, _: object) -> object:
    return frozenset(map(b.completed_access, records))


# --- accesses -------------------------------------------------------------------------------------------------------


@names(by.ACCESS)
def _access(b: FormBuilder, e: Event, _r: Record, bytes_matter: bool) -> object:
    told = e.tags, e.op.span
    if not bytes_matter:
        return told
    value = e.value[:3] if isinstance(e.value, tuple) and e.value[0] == "rmw" else ()
    return (*told, b.at(e.address), e.size, value)


@names(by.LANES)
def _lanes(b: FormBuilder, lanes: Lanes, _r: Record, bytes_matter: bool) -> object:
    match lanes if bytes_matter else None:
        case (start, stride):
            return b.at(start), stride
        case LaneOwners(starts, size, numbers):
            return tuple(map(b.at, starts)), size, numbers
        case other:
            return other


@names(by.CLOCK_OBJECTS)
def _clock_objects(b: FormBuilder, clocks: tuple[int, ...], _r: Record, _: object) -> object:
    return frozenset(b.bars[k] for k in clocks)


@names(by.WAITING_AGENTS)
def _waiting_agents(_b: FormBuilder, waits: list[tuple[int, int]], _r: Record, _: object) -> object:
    return frozenset(agent for agent, _ in waits)


@names(by.HISTORIES)
def _histories(b: FormBuilder, histories: dict[int, History], m: Machine, _: object) -> object:
    return tuple(
        (base, _history(b, h))
        for base, h in sorted(histories.items())
        if base not in m.setup.unwritten_objects and any(h.cells)
    )


def _history(b: FormBuilder, h: History) -> Part:
    """Return the accesses to each byte of an object; equal neighbours are joined."""
    moving = b.addresses.streamed_object_at(h.starts[0])
    if moving is not None:
        cells = zip(h.starts, [*h.starts[1:], h.end], h.cells, strict=True)
        return tuple(
            (low - moving.origin, high - moving.origin, frozenset(map(b.access, cell)))
            for low, high, cell in cells if cell and high > moving.keep_from
        )  # fmt: skip
    out: list[tuple[int, frozenset[Part]]] = []
    for start, cell in _cells(b, h):
        records = frozenset(map(b.access, cell))
        if not out or out[-1][1] != records:
            out.append((start, records))
    return tuple(out)


def _cells(b: FormBuilder, h: History) -> Iterable[tuple[int, list[Record]]]:
    """Return the cells of an object in the order of the old names of their bytes, each with its first byte."""
    cells = zip(h.starts, h.cells, strict=True)
    if h.ring is None:
        return cells
    borders = h.ring.block_starts()
    pieces = [
        (at, cell)
        for (start, cell), end in zip(cells, [*h.starts[1:], h.end], strict=True)
        for at in (start, *(border for border in borders if start < border < end))
    ]
    return sorted(((b.at(at), cell) for at, cell in pieces), key=_first)


@names(by.CONTENTS)
def _contents(b: FormBuilder, memory: Memory, m: Machine, _: object) -> object:
    """Return what is known of the objects whose contents may matter."""
    if not b.contents:
        return ()
    asked = b.whole.find_deciding_objects()
    others = set() if asked is None else {i.base for i in m.program.memory.instances if i.base not in asked}
    return memory.known_contents(m.setup.unwritten_objects | others)


# --- what the events to come are related to -------------------------------------------------------------------------

inline_names(by.WINDOW, "b.names.window")


@names(by.PROGRAM_ORDER)
def _program_order(b: FormBuilder, order: dict[int, tuple[int, int, int]], _m: Machine, _: object) -> object:
    return frozenset((t, b.names.name(before | here)) for t, (before, _, here) in order.items())


@names(by.POLLS)
def _polls(b: FormBuilder, polls: dict[int, int], m: Machine, _: object) -> object:
    return frozenset((t, b.names.name(mask & ~m.control_sources.get(t, 0))) for t, mask in polls.items())
