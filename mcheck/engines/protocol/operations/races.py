"""Conflicting accesses, as the flags of the model classify them, and flags on uses of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mcheck.answers import left_open
from mcheck.answers.advice.graph import line_of
from mcheck.answers.verdict_rules import ACCEPTED
from mcheck.base.errors import InputError
from mcheck.base.phrase import Lack, Phrase, Stage, say
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.diagnosis.graph import graph_of
from mcheck.engines.protocol.diagnosis.mbarrier_lifetime import suggest_publication
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.incremental.entries import Flagged, bits, to_mask
from mcheck.engines.protocol.operations import mbarrier_reordering, raced_values, strong_copies, weakened_accesses
from mcheck.engines.protocol.operations.access_records import describe_access
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.reduction.event_merging import merge_events
from mcheck.engines.protocol.reduction.observed_rmw_order import note_rmw_orders
from mcheck.engines.protocol.state.access_history import LaneMeeting, Record, first_differing_byte, meeting_lanes
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.problems import Problem
from mcheck.events.event import Event
from mcheck.findings import catalogue
from mcheck.findings.entry import Entry as Explained
from mcheck.findings.finding import Access, format_range
from mcheck.findings.fix import Fixes
from mcheck.ir.def_use import written_registers
from mcheck.ir.ops import Await, Load, Op

if TYPE_CHECKING:
    from mcheck.answers.advice.races import Advice

NON_COHERENT = ".nc."
COMMUTATIVE = frozenset(("add", "and", "or", "xor", "min", "max"))
"""Operations of which any two of one kind, on integers, commute."""

Conflict = tuple[Record, int, int, bool, LaneMeeting]
"""An earlier record, the common bytes, whether both access the same bytes, and whether one lane or two do."""
ONE_AND_ONE = LaneMeeting(own=True, across=False)
"""How two agents meet, of which the first lane stands for any: by one pair."""


def enter_accesses(
    m: Machine, agent: Agent, ranges: Iterable[tuple[Record, int, int]], edges: list[dict[str, int]], *, part: int = 0,
    exact: bool = False, back: dict[str, int] | None = None,
) -> tuple[Live, ...]:  # fmt: skip
    """Enter the event of some records, check it against all earlier accesses to the same bytes, and record it.

    The ``ranges`` (record, low, high) are those of one event and share its entries. ``edges`` are those of each
    representative of the agent.
    """
    found = [(record, low, high) for record, low, high in ranges if high > low]
    entries = check_accesses(m, agent, found, edges, part=part, exact=exact, back=back)
    for new, low, high in found:
        note_rmw_orders(m, agent, new, low, high)
        _add_record(m, new, low, high)
    if len(m.window.entries) - len(m.window.free) > m.merge_threshold and Pass.EVENT_MERGING in m.setup.passes:
        merge_events(m)
    return entries


def check_accesses(
    m: Machine, agent: Agent, found: Sequence[tuple[Record, int, int]], edges: list[dict[str, int]], *, part: int = 0,
    exact: bool = False, back: dict[str, int] | None = None,
) -> tuple[Live, ...]:  # fmt: skip
    """Enter the event of some records and check it against all earlier accesses, without recording it in the access
    history.
    """
    event = found[0][0].event
    conflicts: list[tuple[Record, Conflict]] = []
    seen: dict[int, set[tuple[int, bool]]] = {}
    for new, low, high in found:
        conflicts += [(new, c) for c in _conflicts(m, new, low, high, seen.setdefault(id(new), set()))]
    kinds = {same for _, (_, _, _, same, _) in conflicts} or {True}
    ordered = event.order is not None
    where = m.tracked_address(event, exact=exact)
    entries: list[Live] = []
    flags_by_lane: list[dict[bool, list[Flagged]]] = []
    for thread, own in zip(agent.representatives, edges, strict=True):
        entry = m.make_entry(
            thread, event, own, agent.step * 8 + part, ordered=ordered, exact=exact, where=where, back=back
        )
        first = max(kinds)
        flags = {first: m.add_entry(entry, ordered=ordered, complete=first)}
        if len(kinds) > 1 or (exact and False in kinds):
            partly = to_mask(e for _, (old, _, _, same, _) in conflicts if not same for e in old.entries)
            flags[False] = m.window.check_conflicts(entry, partly, complete=False)
        report_object_flags(m, agent, entry, flags[first])
        entries.append(entry)
        flags_by_lane.append(flags)
    for new, _, _ in found:
        new.entries = tuple(entries)
    clean = exact and not any(flags for by_kind in flags_by_lane for flags in by_kind.values())
    for new, conflict in conflicts:
        if not (clean and conflict[3] and _is_followed(conflict[0]) and _is_followed(new)):
            _report_flags(m, new, conflict, flags_by_lane)
    return tuple(entries)


def _is_followed(record: Record) -> bool:
    """Whether an access is followed one by one, so that nothing is to be said of it but what the model flags."""
    plain = Tag.ASYNCREDUCTION not in record.event.tags and NON_COHERENT not in record.event.op.text
    return plain and record.entries[0].exact


def _conflicts(m: Machine, new: Record, low: int, high: int, seen: set[tuple[int, bool]]) -> Iterable[Conflict]:
    """The earlier records that a record conflicts with in a range: each once by one lane and once by two, as far as not
    yet ``seen``.
    """
    _, history = m.history_at(low)
    for k in history.split_cells(low, high):
        start = history.starts[k]
        end = history.starts[k + 1] if k + 1 < len(history.starts) else history.end
        for old in history.cells[k]:
            if not (new.write or old.write or m.setup.reads_conflict) or old.event is new.event:
                continue
            a, b = old.event, new.event
            same = a.size == b.size and (_start(old) - _start(new)) % max(a.size, 1) == 0
            met = ONE_AND_ONE
            if old.agent == new.agent and not m.agents[new.agent].is_single_thread:
                met = meeting_lanes(old.lanes, new.lanes, start, end)
            own = met.own and (id(old), False) not in seen
            across = met.across and (id(old), True) not in seen
            if own or across:
                seen |= {(id(old), kind) for kind, is_new in ((False, own), (True, across)) if is_new}
                yield old, start, end, same, LaneMeeting(own=own, across=across)


def _start(record: Record) -> int:
    """The address of an access; for adjacent accesses of lanes, that of the first lane."""
    return record.lanes[0] if isinstance(record.lanes, tuple) else record.event.address


def _report_flags(m: Machine, new: Record, conflict: Conflict, flags_by_lane: list[dict[bool, list[Flagged]]]) -> None:
    """Report the flags that hold of a pair."""
    old, low, high, same, met = conflict
    if _is_left_open(old.event.op) or _is_left_open(new.event.op):
        m.not_followed = _not_read_only(old.event.op, new.event.op)
    if weakened_accesses.are_morally_strong(m, old, new, complete=same):
        return
    pairs = [(0, 0)] if met.own else []
    if met.across:
        pairs.append((0, 1) if len(new.entries) > 1 and len(old.entries) > 1 else (0, 0))
    names: list[str] = []
    for mine, theirs in ((b, a) for a, b in pairs):
        bit = old.entries[theirs].bit if theirs < len(old.entries) else old.entries[0].bit
        for flag in flags_by_lane[mine].get(same, flags_by_lane[mine][max(flags_by_lane[mine])]):
            if flag.pairs & bit and flag.name not in names:
                names.append(flag.name)
    for question in filter(left_open.is_question, names):
        _leave_open(m, old, new, question)
    raced_values.note_other_value(m, old, new, names, same=same, across=met.across)
    strong = strong_copies.are_strong(old, new)
    if strong and strong_copies.are_morally_strong(m, old, new):
        if strong_copies.are_in_flight(m, old, new, names):
            _report(m, catalogue.get(strong_copies.IN_FLIGHT), old, new, low, high)
        strong_copies.leave_open(m, old, new, names)
        return
    for name in names:
        entry = _find_entry(name)
        if entry is not None:
            _report(m, entry, old, new, low, high)
    if strong:
        strong_copies.note_narrow_scopes(m, old, new, names)
    if names:
        if not ACCEPTED.issuperset(names):
            _note_delayed_read(m, old, new)
        return
    if _unordered_reductions(old, new) and not _commute(old.event, new.event):
        m.inexact_reason = "unordered asynchronous reductions whose order decides the result"
    elif _is_unordered(m, old, new):
        m.inexact_reason = "unordered accesses that the model does not flag as a race"


def _leave_open(m: Machine, old: Record, new: Record, question: str) -> None:
    """Note a pair that a question leaves open. A read that is followed may return what it would not: so what is found
    behind it is left open as well.
    """
    found = left_open.left_open_by(question, (old.event, new.event))
    if m.left_open is None or found.rank < m.left_open.rank:
        m.left_open = found
        m.not_followed = found.describe()
    if found.follows and (old.entries[0].exact or new.entries[0].exact) and m.findings_left_open is None:
        m.findings_left_open = len(m.problems)


def drop_findings_left_open(m: Machine) -> None:
    """Drop what was found behind accesses that may order it, or that may read something else."""
    first = m.findings_left_open
    if first is not None and len(m.problems) > first:
        del m.problems[first:]
        m.not_followed = m.not_followed or strong_copies.FOUND_BEHIND
    if m.left_open is not None:
        dependent = left_open.flags_of_order(m.setup.tape.checks)
        m.problems[:] = [problem for problem in m.problems if problem.code not in dependent]


def _is_left_open(op: Op) -> bool:
    """Whether this is a load through the non-coherent cache that a compiler has chosen, in a module: whether its memory
    is written is left open there. In a sketch the model has a flag for it.
    """
    return isinstance(op, Load) and not op.non_coherent and NON_COHERENT in op.text


def _not_read_only(old: Op, new: Op) -> str:
    """Why the answer is open: a load through the non-coherent cache reads what is written."""
    load, write = (old, new) if _is_left_open(old) else (new, old)
    return f"line {line_of(load)} reads through the non-coherent cache what line {line_of(write)} writes (9.7.9.9)"


def _note_delayed_read(m: Machine, old: Record, new: Record) -> None:
    """Note a read that decides something and may return a write that only time orders after it, which no order of the
    steps shows. A failed read before it may have observed what comes later, where nothing keeps their order (8.10.5).
    """
    agent = m.agents[old.agent]
    if not new.write or old.write:
        return
    before = m.agents[new.agent].time[old.agent] >= old.step
    decides = before and any(
        name in m.setup.sliced_registers[agent.threads[0]] for name, _ in written_registers(old.event.op)
    )
    if decides or (isinstance(m.trace[old.position].op, Await) and _returns_older_write(m, old, new)):
        mbarrier_reordering.note_reordering(m, old.event, new.event)


def _returns_older_write(m: Machine, read: Record, write: Record) -> bool:
    """Whether a read returns what cannot come after a write: the initial value, or a write of the same thread."""
    sources = (m.window.entries[k] for entry in read.entries for k in bits(entry.edges.get("rf", 0)))
    return all(e is None or e.thread < 0 or m.agent_of_thread[e.thread] == write.agent for e in sources)


def _is_unordered(m: Machine, old: Record, new: Record) -> bool:
    """Whether two accesses that are not tracked may come in either order."""
    if old.agent == new.agent or old.asynchronous or new.asynchronous:
        return False
    followed = old.entries[0].exact and new.entries[0].exact
    return not followed and m.agents[new.agent].time[old.agent] < old.step


def _find_entry(name: str) -> Explained | None:
    """The catalogue's entry of a flag; other flags concern the model alone."""
    try:
        return catalogue.get(name)
    except InputError:
        return None


def _unordered_reductions(old: Record, new: Record) -> bool:
    return Tag.ASYNCREDUCTION in old.event.tags and Tag.ASYNCREDUCTION in new.event.tags


def _commute(a: Event, b: Event) -> bool:
    """Whether two operations on one word have the same result in either order: reductions of one kind on integers."""
    if Tag.W not in a.tags or Tag.W not in b.tags:
        return True  # the two writes are checked against each other as well
    match a.value, b.value:
        case ("rmw", kind, type_, _, _), ("rmw", other, other_type, _, _):
            return (kind, type_) == (other, other_type) and is_commutative(kind, type_)
    return False


def is_commutative(kind: str, type_: str) -> bool:
    """Whether any two operations of this kind and type commute."""
    return kind in COMMUTATIVE and type_[0] in "usb" and not type_.startswith("bf")


def _add_record(m: Machine, new: Record, low: int, high: int) -> None:
    """Add a record to the access history."""
    _, history = m.history_at(low)
    for k in history.split_cells(low, high):
        cell = history.cells[k]
        many = len(cell) > 8 and not len(cell) & len(cell) - 1  # and again at each power of two
        if many and Pass.EVENT_MERGING in m.setup.passes:
            alike = {r.merge_key(): r for r in cell}
            cell[:] = alike.values()
        cell.append(new)


def report_object_flags(m: Machine, agent: Agent, entry: Live, flags: list[Flagged]) -> None:
    """Report flags on events other than pairs of memory accesses: uses of mbarrier objects, lifetimes."""
    mine = entry.event
    for flag in flags:
        explained = _find_entry(flag.name)
        if explained is None:
            continue
        rest = flag.pairs & ~m.window.accesses if mine.size else flag.pairs  # two accesses are a race, if anything
        while rest or flag.own:
            low = rest & -rest
            rest ^= low
            other = m.window.entries[low.bit_length() - 1] if low else None
            theirs = other.event if other is not None else None
            if theirs is not None and theirs.size and mine.size:
                continue
            if theirs is not None and mine.size == 0 and theirs.size and other is not None:
                report_object_use(m, explained.code, m.agent_of_thread[other.thread], theirs, mine)
            else:
                report_object_use(m, explained.code, agent.index, mine, theirs)
            if not low:
                break


def report_object_use(m: Machine, code: str, who: int, event: Event, other: Event | None) -> None:
    """Report a use of an object, or of memory, at the wrong time; once for each statement."""
    if (code, event.op.span) in m.reported:
        return
    m.reported.add((code, event.op.span))
    agent = m.agents[who]
    text, fixes = _describe_use(m, code, agent, event, other)
    m.report_problem(code, text, agent, event.op, event if event.mbarrier is not None else None, fixes)


def _describe_use(m: Machine, code: str, agent: Agent, event: Event, other: Event | None) -> tuple[Phrase, Fixes]:
    """The message and the fixes for a use of an object at the wrong time."""
    address = event.mbarrier.address if event.mbarrier is not None else event.address
    if other is not None and other.mbarrier is not None:
        address = other.mbarrier.address
    thing, used = m.thing_at(address), m.object_of(event)
    match code:
        case "RACE012":
            does = "written" if Tag.W in event.tags else "read"
            return say("{} is {} before a griddepcontrol.wait for the grid in front", used, does), ()
        case "UB201":
            bar = m.mbarriers.get(address)
            fixes = suggest_publication(m, agent, bar, event.op) if bar is not None else ()
            text = "{} may hold no mbarrier yet: nothing orders its mbarrier.init before this operation"
            return say(text, thing), fixes
        case "UB202" | "UB203":
            what = "copies over" if code == "UB203" else "accesses"
            return say("{} {}, which holds an mbarrier at that time or may hold one", what, thing), ()
        case "UB501":
            return say("reads {}, whose CTA may end before the copy has read it", used), ()
        case "UB502":
            return say("may use {} after the CTA that it belongs to has ended", used), ()
        case "UB503":
            return ("uses the shared memory of a CTA that may not have started",), ()
        case "UB504":
            return say("copies to {}, whose CTA may end before the copy is complete", used), ()
    return (catalogue.get(code).name.replace("-", " "),), ()


def _advice(m: Machine, old: Record, new: Record, low: int, code: str) -> Advice:
    from mcheck.answers.advice.races import Advice, advise_on_race  # correct programs need none

    return advise_on_race(graph_of(m, old, new, low), code) if m.setup.advises else Advice(())


def _slot(m: Machine, *records: Record) -> Stage | None:
    """The part of its buffer that a copy among the accesses fills."""
    terms = m.program.terms
    slots = (terms.slot(r.event.op) for r in records if r.write) if terms is not None else ()
    return next((slot for slot in slots if slot is not None), None)


def _report(m: Machine, entry: Explained, old: Record, new: Record, low: int, high: int) -> None:
    """Report a flag on a pair of accesses, once for each pair of statements: of two warps rather than of one, where
    less than a barrier of the CTA might do. The wait that an asynchronous access lacks is that of its own warp.
    """
    code = entry.code
    spans = (code, old.event.op.span, new.event.op.span, old.write, new.write)
    within = m.warp_of(m.agents[old.agent]) == m.warp_of(m.agents[new.agent])
    plain = old.event.order is not None and new.event.order is not None
    before = ("within a warp", *spans)
    if spans in m.reported and (within or before not in m.reported):
        return
    m.reported.add(spans)
    if within and plain:
        m.reported.add(before)
    byte = first_differing_byte(old.lanes, new.lanes, low, high) if old.agent == new.agent else low
    first, second = describe_access(m, old, byte, high, new), describe_access(m, new, byte, high, old)
    base = _base(m, low)
    where = format_range(first.object, byte - base, high - base)
    slot = _slot(m, old, new)
    what = " and ".join(map(_named, (first, second)))
    advice = _advice(m, old, new, low, code)
    lack = (": ", Lack(advice.lack)) if advice.lack else ()
    stage = (", ", slot) if slot is not None else ()
    said = say("{} on {}{}: {}{}", entry.name.replace("-", " "), where, stage, what, lack)
    found = Problem(
        code,
        said,
        (first, second),
        tuple(sorted({old.agent, new.agent})),
        len(m.trace),
        old.position,
        advice.fixes,
        advice.gap,
    )
    if within or before not in m.reported:
        m.problems.append(found)
        return
    m.reported.discard(before)
    ends = [(a.span, a.access) for a in found.accesses]
    same = (k for k, p in enumerate(m.problems) if p.code == code and [(a.span, a.access) for a in p.accesses] == ends)
    if (at := next(same, None)) is not None:
        m.problems[at] = found


def _named(access: Access) -> str:
    """An access as the message names it; the write of a tcgen05.alloc by its instruction."""
    alloc = ".alloc" in access.instruction and access.access == "write"
    by = f"{access.thread}'s tcgen05.alloc" if alloc else access.thread
    return f"the {access.proxy} {access.action} by {by}"


def _base(m: Machine, address: int) -> int:
    """The base address of the object at an address."""
    instance = m.program.memory.find(address)
    return instance.base if instance is not None else 0
