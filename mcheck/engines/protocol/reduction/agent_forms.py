"""Names of agents and their lanes in canonical forms: registers, groups of copies, barriers of the warp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.reduction.completion_classes import find_records
from mcheck.engines.protocol.reduction.derived_forms import Part, former_of, names
from mcheck.engines.protocol.reduction.form_builder import FormBuilder
from mcheck.engines.protocol.reduction.loop_memo import loop_state
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import BarrierState, Mbarrier, Word
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.events import thread_state as by_lane
from mcheck.events.thread_state import AsyncRecord, Groups
from mcheck.events.thread_state import State as Lane
from mcheck.ir.aligned_operations import Statement
from mcheck.ir.demanded_bits import ALL
from mcheck.semantics.mbarrier import pending_before, phases_behind
from mcheck.semantics.terms import Term, Uid, reads_of


class LaneForm(NamedTuple):
    """The form of one lane: its registers by name, and the rest."""

    registers: tuple[tuple[str, object], ...]
    rest: Part


class AgentForm(NamedTuple):
    """The form of an agent: its place in the code, its lanes, and the rest."""

    place: object
    lanes: tuple[LaneForm, ...]
    rest: Part


class LaneOf(NamedTuple):
    """A lane of an agent."""

    agent: Agent
    number: int
    waited: set[Uid]
    """The events whose completion it has observed."""


def build_agent_form(b: FormBuilder, a: Agent) -> AgentForm:
    """Return the form of an agent."""
    names: dict[object, int] = {}
    lanes = []
    former = former_of(Lane, frozenset((by_lane.REGISTERS,)))
    for k, lane in enumerate(a.lanes):
        of = LaneOf(a, k, {uid for uid, _ in lane.completes})
        lanes.append(LaneForm(_registers(b, lane, of, names), former(b, lane, of)))
    return AgentForm(b.place(a), tuple(lanes), former_of(Agent, frozenset((by.PLACE, by.LANE_STATES)))(b, a, None))


# --- agents ---------------------------------------------------------------------------------------------------------


@names(by.BLOCKED_ON)
def _blocked_on(b: FormBuilder, where: object, _a: Agent, _: object) -> object:
    match where:
        case Mbarrier():
            return "mbarrier", b.at(where.address)
        case BarrierState():
            return "meeting", where.key
        case Word():
            return "word", where.address
    return repr(where)


@names(by.LOOP_STATE)
def _loop_state(b: FormBuilder, _visits: object, a: Agent, _: object) -> object:
    return loop_state(b.m, a) if b.m.setup.loop_heads[a.index] else ()


@names(by.ALIGNED_COUNT)
def _aligned_count(b: FormBuilder, count: int, a: Agent, _: object) -> object:
    return count - min(mate.aligned_count for mate in b.m.agents if b.m.warp_of(mate) == b.m.warp_of(a))


@names(by.CLUSTER_ARRIVAL)
def _cluster_arrival(b: FormBuilder, met: BarrierState | None, a: Agent, _: object) -> object:
    if met is None:
        return None
    return a.index in met.arrived, b.time(met.time), b.names.name(met.arrivals), b.names.name(met.previous_events)


@names(by.WGMMA_GROUPS)
def _wgmma_groups(b: FormBuilder, all_groups: list[tuple[list[Record], Vector, int]], a: Agent, _: object) -> object:
    """Return how many more groups there are than those of the other warps, and those that somebody still waits for."""
    if not all_groups and not a.open_wgmma:
        return ()
    mine = b.m.program.threads[a.threads[0]].place.warpgroup
    mates = [mate for mate in b.m.agents if b.m.program.threads[mate.threads[0]].place.warpgroup == mine]
    first = min((_count_completed_wgmma_groups(mate) for mate in mates if mate.wgmma_groups), default=0)
    groups = all_groups[max(first - 1, 0) :]
    return (
        len(all_groups) - first, tuple(map(b.access, a.open_wgmma)),
        tuple(
            (tuple(map(b.access, records)), b.time(time), b.names.name(awaited))
            for records, time, awaited in groups
        ),
    )  # fmt: skip


def _count_completed_wgmma_groups(a: Agent) -> int:
    """Return how many of the agent's groups of wgmma are complete for all."""
    return next((k for k, (records, *_) in enumerate(a.wgmma_groups) if records), len(a.wgmma_groups))


@names(by.ACCESS_SET)
def _access_set(b: FormBuilder, records: list[Record], _a: Agent, _: object) -> object:
    return frozenset(map(b.access, records))


@names(by.SOURCES)
def _sources(b: FormBuilder, sources: list[dict[str, int]], _a: Agent, _: object) -> object:
    live = b.m.window.all
    return tuple(frozenset((n, b.names.name(mask)) for n, mask in of.items() if mask & live) for of in sources)


@names(by.ALIGNED_STATEMENTS)
def _aligned_statements(
    _b: FormBuilder, statements: dict[tuple[int, int], list[Statement]], m: Machine, _: object
) -> object:
    """Return by warp the aligned barriers that some of it has executed, and others have not."""
    out = []
    for warp, done in statements.items():
        counts = [a.aligned_count for a in m.agents if m.warp_of(a) == warp]
        out.append((warp, tuple(done[min(counts) :])))
    return frozenset(out)


# --- registers ------------------------------------------------------------------------------------------------------


def _registers(b: FormBuilder, lane: Lane, of: LaneOf, names: dict[object, int]) -> tuple[tuple[str, object], ...]:
    """Return the registers that matter; unknown values are numbered by their first occurrence."""
    a, setup = of.agent, b.m.setup
    needed = setup.needed_registers[a.threads[of.number]].intersection(lane.registers)
    states = setup.facts_of(a.index).state_registers
    bits = b.whole.demanded_bits_of(a.index, stores=b.contents) if needed else {}
    return tuple(
        (
            r,
            _mbarrier_state(b, lane.registers[r])
            if r in states
            else _demanded_value(lane.registers[r], bits.get(r, ALL), names),
        )
        for r in sorted(needed)
    )


def _mbarrier_state(b: FormBuilder, term: Term) -> object:
    """Return the state that an arrive returned, as waits use it (PTX ISA 9.7.13.15.16).

    That is its object, and whether it is of the present phase or the one before. Waits cannot be given older ones.
    """
    if not isinstance(term, int):
        return "unknown"
    homes = [bar for bar in b.m.mbarriers.values() if (bar.address, term) in b.m.tokens]
    behind = (min(phases_behind(bar.state, term), 2) for bar in homes if bar.state is not None)
    return tuple(b.at(bar.address) for bar in homes), tuple(behind), pending_before(term)


@names(by.TOKENS)
def _tokens(b: FormBuilder, tokens: set[tuple[int, int]], m: Machine, _: object) -> object:
    """Return the states that some register still holds that is used otherwise too."""
    held = {
        v
        for a in m.agents
        for lane in a.lanes
        for r, v in lane.registers.items()
        if isinstance(v, int) and r not in m.setup.facts_of(a.index).state_registers
    }
    return frozenset((b.at(address), token) for address, token in tokens if token in held)


def _demanded_value(term: Term, bits: int, names: dict[object, int]) -> object:
    """Return a value; of a number only the bits that matter."""
    return term & bits if isinstance(term, int) else _term(term, names)


def _term(term: Term, names: dict[object, int]) -> object:
    """Return a value, with unknown values numbered."""
    if isinstance(term, int):
        return term
    if term and term[0] in ("?", "e"):
        return term[0], names.setdefault(term, len(names))
    return tuple(_term(x, names) if isinstance(x, tuple) else x for x in term)


# --- what a lane has established about values -----------------------------------------------------------------------


@names(by_lane.CONSTRAINTS)
def _constraints(b: FormBuilder, constraints: list[tuple[Term, bool]], lane: Lane, _: LaneOf) -> object:
    """Where the contents of memory do not matter, those on reads that no register holds any more are left out."""
    if not b.contents:
        held = _held_reads(lane)
        constraints = [(term, truth) for term, truth in constraints if held.intersection(reads_of(term))]
    return repr(constraints)


@names(by_lane.KNOWN_READS)
def _known_reads(b: FormBuilder, known: dict[Uid, int], lane: Lane, _: LaneOf) -> object:
    if not b.contents and known:
        held = _held_reads(lane)
        known = {uid: value for uid, value in known.items() if uid in held}
    return repr(known)


def _held_reads(lane: Lane) -> set[Uid]:
    """Return the reads that values in registers come from."""
    return {uid for value in lane.registers.values() for uid in reads_of(value)}


# --- groups of copies -----------------------------------------------------------------------------------------------


@names(by_lane.GROUPS)
def _groups(b: FormBuilder, groups: dict[str, Groups], _lane: Lane, of: LaneOf) -> object:
    return tuple(_group(b, of, family, g) for family, g in sorted(groups.items()))


def _group(b: FormBuilder, of: LaneOf, family: str, groups: Groups) -> Part:
    """Return the groups of a lane: those that a wait may complete separately, and of all others the kinds of copies.

    The destination of copies matters while their group is open, until their completion is observed.
    """
    known = b.m.setup.facts_of(of.agent.index).pending_depths(family)
    if known is None:
        shallow, deep = groups.committed, []
    else:
        depth = max(known.reads, known.writes)
        behind = max(len(groups.committed) - depth, 0)
        shallow, deep = groups.committed[behind:], groups.committed[:behind]
    new = groups.open[groups.covered_by_signal :]
    return (
        family, _copies(b, of, groups.open),
        tuple(tuple((b.at(at), size) for at, size in r.destinations) for r in new),
        tuple(_copies(b, of, group) for group in shallow),
        _copies(b, of, [r for group in deep for r in group]),
    )  # fmt: skip


@names(by_lane.TRACKED_COPIES)
def _tracked_copies(b: FormBuilder, copies: list[AsyncRecord], _lane: Lane, of: LaneOf) -> object:
    return _copies(b, of, copies if b.m.setup.facts_of(of.agent.index).arrives_on_cp_async else ())


@names(by_lane.ISSUED)
def _piped(b: FormBuilder, records: list[AsyncRecord], _lane: Lane, of: LaneOf) -> object:
    return tuple(_issued(b, of, r) for r in records)


@names(by_lane.COMPLETIONS)
def _completions(_b: FormBuilder, pairs: list[tuple[Uid, Uid]], _lane: Lane, of: LaneOf) -> object:
    return _count_left(pairs, of.agent.completed_counts, of.number)


@names(by_lane.TRACKED)
def _tracked(_b: FormBuilder, pairs: list[tuple[Uid, Uid]], _lane: Lane, of: LaneOf) -> object:
    return _count_left(pairs, of.agent.tracked_counts, of.number)


def _count_left(pairs: list[tuple[Uid, Uid]], used: list[int], lane: int) -> int:
    return len(pairs) - (used[lane] if lane < len(used) else 0)


def _copies(b: FormBuilder, of: LaneOf, issued: Iterable[AsyncRecord]) -> frozenset[Part]:
    """Return copies that complete together: equal ones have the same future, however many there are."""
    return frozenset(_issued(b, of, r) for r in issued)


def _issued(b: FormBuilder, of: LaneOf, record: AsyncRecord) -> Part:
    return record.family, tuple(
        (
            all(uid in of.waited for uid in uids),
            tuple(map(b.completed_access, find_records(of.agent, of.number, uids))),
        )
        for uids in (record.reads, record.writes)
    )
