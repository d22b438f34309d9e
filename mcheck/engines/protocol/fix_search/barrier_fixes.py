"""Barriers that would order two accesses, and barriers that were completed by other threads than intended.

A barrier with a count is complete once so many threads have arrived, whichever they are (PTX ISA 9.0 section 9.7.13.1).
Fixes are found by trials, as in ``mcheck.engines.protocol.fix_search.trials``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from mcheck.answers.advice.graph import site_of
from mcheck.answers.advice.unused_barriers import unused_barrier
from mcheck.base.errors import Span
from mcheck.base.phrase import Aside, Phrase, Site, Sites, say
from mcheck.base.records import dataclass, replace
from mcheck.engines.protocol.diagnosis.iteration import iteration_at
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.operations.thread_names import format_threads
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.findings.finding import Finding
from mcheck.findings.fix import (
    BeforeIssue,
    Change,
    Condition,
    Fix,
    Fixes,
    Given,
    HandOver,
    Insert,
    Meet,
    Point,
    Property,
    advise,
)
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion, Replacement
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Place, Thread

WARP = 32
MAX_PLACES = 7
"""Number of places of a barrier to try."""
FEW_PLACES = 3
"""The same of a barrier for which there is a wider one: what is too narrow is so at each place."""
MORE_PLACES = 3
"""The same once one has mended a race, but not the others of its statements."""


# --- barriers with a count ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """A complete round of a barrier with a count."""

    key: tuple[object, ...]
    arrivals: tuple[SyncOperation, ...]

    def arrival(self, agent: int) -> SyncOperation | None:
        """Return the first arrival of an agent."""
        return next((d for d in self.arrivals if d.agent == agent), None)

    @property
    def repeated_arrivals(self) -> tuple[SyncOperation, SyncOperation] | None:
        """Two arrivals of one agent, if there are any."""
        for one, other in combinations(sorted(self.arrivals, key=lambda d: (d.agent, d.step)), 2):
            if one.agent == other.agent:
                return one, other
        return None


def find_complete_rounds(m: Machine) -> list[Round]:
    """Return the complete rounds of all barriers with a count, in the order of each barrier."""
    return [Round(key, arrivals) for key, arrivals in m.completed_barriers]


def explain_foreign_completion(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """Explain that the barrier that the later access's thread left was completed without the earlier one's."""
    every = find_complete_rounds(m)
    mine = [(d, r) for r in every for d in r.arrivals if d.agent == new.agent and d.step < new.step]
    mine = [(d, r) for d, r in mine if _waits(d.event.op)]
    if not mine or m.agents[old.agent].placement != m.agents[new.agent].placement:
        return ()
    left, passed = max(mine, key=lambda pair: pair[0].step)
    other = m.agents[old.agent]
    if any(d.agent == old.agent and d.step > old.step for d in passed.arrivals):
        return ()
    if not any(_has_key(op, passed.key) for op in other.code[old.pc + 1 :]):
        return ()
    came = format_threads(m, [m.agents[k] for k in sorted({d.agent for d in passed.arrivals})])
    left_at, one = site_of(left.event.op), m.name(m.agents[new.agent])
    let = say("Barrier {} let {} go at {} when {} had arrived", str(passed.key[-1]), one, left_at, came)
    text = advise("{}, before {} did", let, m.name(other))
    more = explain_double_arrival(m, passed) or _suggest_other_barrier(m, passed, is_fix)
    return (text, *more) if more else suggest_barrier(m, old, new, is_fix) or (text,)


def _has_key(op: Op, key: tuple[object, ...]) -> bool:
    return isinstance(op, ops.Barrier) and isinstance(op.barrier, Const) and op.barrier.value == key[-1]


def _waits(op: Op) -> bool:
    return isinstance(op, ops.Barrier) and op.kind != "arrive"


def explain_double_arrival(m: Machine, passed: Round) -> Fixes:
    """Explain that a warp has arrived for the second time before a round was complete."""
    if passed.repeated_arrivals is None:
        return ()
    warp = m.setup.warp_mates[passed.repeated_arrivals[0].agent]
    who = format_threads(m, [m.agents[k] for k in sorted(warp)])
    sites = Sites(tuple(site_of(done.event.op) for done in passed.repeated_arrivals), " and ")
    turns = ", ".join(filter(None, (iteration_at(m, done.position) for done in passed.repeated_arrivals)))
    where = say("{}{}", sites, Aside(f" ({turns})") if turns else "")
    twice = say("{} arrived twice in one round of barrier {}, at {}", who, str(passed.key[-1]), where)
    wait = "let the warp wait until the round is over before it arrives again, or use two barriers in turn"
    return (advise("{}: {}", twice, wait),)


def explain_double_arrival_at(m: Machine, at: BarrierState) -> Fixes:
    """Explain the same of a barrier where threads wait forever, by its complete and its incomplete rounds."""
    came = (*at.arrived.values(), *(d for more in at.repeated_arrivals.values() for d in more))
    mine = [r for r in find_complete_rounds(m) if r.key == at.key] + [Round(at.key, tuple(came))]
    which = next((r for r in mine if r.repeated_arrivals is not None), None)
    return explain_double_arrival(m, which) if which is not None else ()


def _suggest_other_barrier(m: Machine, passed: Round, is_fix: IsFix) -> Fixes:
    """Suggest another barrier number for one role, or the count of all threads that arrive, if that is a fix."""
    users: dict[Span, set[str]] = {}
    warps: set[tuple[int, int]] = set()
    used: set[Const] = set()
    cta = m.program.threads[m.agents[passed.arrivals[0].agent].threads[0]].place.cta
    for thread in m.program.threads:
        for op in thread.code:
            if not isinstance(op, ops.Barrier) or not isinstance(op.barrier, Const) or op.span is None:
                continue
            used.add(op.barrier)
            if op.barrier.value == passed.key[-1] and thread.place.cta == cta:
                users.setdefault(op.span, set()).add(thread.role)
                warps.add(thread.place.own_warp)
    free = unused_barrier(used)
    for role in sorted({r for roles in users.values() for r in roles}):
        spans = [span for span, roles in users.items() if roles == {role}]
        if free is None or not 0 < len(spans) < len(users):
            continue
        if is_fix([Replacement(_with_number(free), span) for span in spans]):
            change = Change(
                what=Property.BARRIER, sites=_sites(spans), new=str(free), old=str(passed.key[-1]), subject=(role,)
            )
            return (Fix((change,)),)
    count = WARP * len(warps)
    if is_fix([Replacement(_with_count(count), span) for span in users]):
        change = Change(what=Property.THREADS, sites=_sites(users), new=str(count))
        return (Fix((change,), why=("all that come to it",)),)
    return ()


def _sites(spans: Iterable[Span]) -> tuple[Site, ...]:
    return tuple(Site(span.line, span.column) for span in sorted(spans, key=lambda s: s.line))


def _with_number(number: int) -> Callable[[Op], Op]:
    return lambda op: replace(op, barrier=Const(number))  # type: ignore[call-arg]


def _with_count(count: int) -> Callable[[Op], Op]:
    return lambda op: replace(op, count=Const(count))  # type: ignore[call-arg]


# --- barriers that are missing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier of all ``threads`` of a warp, CTA or cluster, as instructions that each of them executes."""

    code: tuple[Op, ...]
    threads: tuple[Thread, ...]
    given: tuple[Given, ...] = ()


def suggest_barrier(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """Suggest a barrier of the warp, CTA or cluster that orders two accesses, if there is a place for it.

    Not where they are already ordered in time. Where threads wait for mbarriers, these may be meant to order them: then
    only if what follows from the accesses is that a barrier, or another hand-over, is missing.
    """
    one, other = (m.program.threads[m.agents[e.agent].threads[0]].place for e in (old, new))
    if _use_mbarriers(m, old, new) and not _lacks_hand_over(is_fix.finding):
        return ()
    meetings = list(_meetings(m, one, other, known=new.time[old.agent] >= old.step))
    for meeting in meetings:
        most = MAX_PLACES if meeting is meetings[-1] else FEW_PLACES
        place = _find_place(m, meeting, old, new, is_fix, most)
        if place is not None:
            codes = tuple(op.text for op in meeting.code)
            why = () if meeting.given else _explain_shuffle(m, old, new)
            return (Fix((Insert(codes=codes, points=(place,), given=meeting.given),), why=why),)
    return ()


def _lacks_hand_over(finding: Finding) -> bool:
    """Whether a barrier, or a release and an acquire, is what follows from the accesses."""
    steps = [step for fix in finding.fixes for step in fix.steps]
    return len(steps) == 1 and isinstance(steps[0], Meet | BeforeIssue | HandOver)


def _meetings(m: Machine, one: Place, other: Place, *, known: bool) -> Iterator[Meeting]:
    """Yield the barriers at which threads at two places meet, the narrowest first. ``known``: the one comes after the
    other in time, which is nothing for a barrier to mend unless lanes exchanged values.
    """
    threads = m.program.threads
    if one.own_warp == other.own_warp:
        mask = sum(1 << t.place.lane for t in threads if t.place.own_warp == one.own_warp)  # the lanes that exist
        meet = ops.WarpSync(mask=Const(mask), text=f"bar.warp.sync 0x{mask:x}")
        yield Meeting((meet,), tuple(t for t in threads if t.place.own_warp == one.own_warp))
    if known and one.own_warp != other.own_warp:
        return
    if one.cta == other.cta:
        sync = ops.Barrier(kind="sync", barrier=Const(0), text="bar.sync 0")
        mine = tuple(t for t in threads if t.place.cta == one.cta)
        yield Meeting((sync,), mine, (Given(Condition.EACH_OF_CTA),))
    clusters = [(place.cta.gpu, place.cta.cluster) for place in (one, other)]
    cluster = tuple(t for t in threads if (t.place.cta.gpu, t.place.cta.cluster) == clusters[0])
    if clusters[0] == clusters[1] and len({t.place.cta for t in cluster}) > 1:
        arrive = ops.ClusterBarrier(kind="arrive", sem="release", text="barrier.cluster.arrive")
        wait = ops.ClusterBarrier(kind="wait", sem="acquire", text="barrier.cluster.wait")
        yield Meeting((arrive, wait), cluster, (Given(Condition.EACH_OF_CLUSTER),))


def _executed_by_all(threads: Iterable[Thread], op: Op) -> bool:
    """Return whether all of these threads execute a statement."""
    codes = {id(t.code): t.code for t in threads}.values()
    return all(any(o.span == op.span for o in code) for code in codes)


def _use_mbarriers(m: Machine, old: TraceEntry, new: TraceEntry) -> bool:
    """Return whether the threads of two steps have waited for an mbarrier."""
    waits = (e for e in m.trace if isinstance(ops.performed_operation(e.op), ops.MbarrierWait))
    return any(e.agent in (old.agent, new.agent) for e in waits)


def _find_place(
    m: Machine, meeting: Meeting, old: TraceEntry, new: TraceEntry, is_fix: IsFix, most: int
) -> Point | None:
    """Return a place where a barrier is a fix: before the later access, after the earlier one, or in between. One that
    leaves fewer races on the same bytes is better, and if they are as many, one behind a wait, where each round comes
    by: in a branch, rounds that do not take it are left.
    """
    found: Candidate | None = None
    least = (0, False)
    last = most
    every = [one for one in _candidate_places(m, old, new, is_fix) if _executed_by_all(meeting.threads, one.op)]
    for number, place in enumerate(sorted(every, key=lambda one: _has_mended(one, is_fix))):
        if number >= last:
            break
        assert place.op.span is not None
        trial = is_fix([Insertion(each, after=place.after, span=place.op.span) for each in meeting.code])
        left = trial.leaves, not (place.after and isinstance(place.op, ops.WaitGroup))
        if trial and (found is None or left < least):
            found, least, last = place, left, min(last, number + 1 + MORE_PLACES)
            if not trial.leaves or place.point in is_fix.mended:
                break
    if found is None:
        return None
    is_fix.mended.update((found.way, found.point))
    return found.point


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place to try: behind a statement, or before it; ``way`` is a number that says how it was found."""

    way: int
    op: Op
    after: bool

    @property
    def point(self) -> Point:
        """The place, as fixes name it."""
        return Point(site_of(self.op), self.after)


def _has_mended(place: Candidate, is_fix: IsFix) -> int:
    """A number that is smaller if a barrier at the place, or at one that was found the same way, has mended a race."""
    return 0 if place.point in is_fix.mended else 1 if place.way in is_fix.mended else 2


def _candidate_places(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Iterator[Candidate]:
    """Yield the places to try."""
    seen: set[object] = set()
    first, last = m.trace.index(old), m.trace.index(new)
    behind = [e.op for e in reversed(m.trace[:last]) if e.agent == new.agent and e.signal < 0]
    ahead = [e.op for e in m.trace[first + 1 :] if e.agent == old.agent and e.signal < 0]
    options = [
        (new.op, False),
        (old.op, True),
        (old.op, False),
        *((op, False) for op in behind[:2]),
        *((op, False) for op in ahead[:2]),
    ]
    options[3:3] = ((op, True) for op in _in_gap(m, old, new, is_fix.finding))
    for way, (op, after) in enumerate(options):
        if op.span is not None and (op.span, after) not in seen:
            seen.add((op.span, after))
            yield Candidate(way, op, after)


def _in_gap(m: Machine, old: TraceEntry, new: TraceEntry, finding: Finding) -> Iterator[Op]:
    """Yield the statements behind which a barrier orders two accesses, the last one first."""
    lines = {line.line for line in finding.gap}
    codes = (m.agents[entry.agent].code for entry in (old, new))
    at = {op.span.line: op for code in codes for op in code if op.span is not None and op.span.line in lines}
    yield from (at[line] for line in sorted(at, reverse=True))


def _explain_shuffle(m: Machine, old: TraceEntry, new: TraceEntry) -> Phrase:
    """Explain that lanes exchanged values in between, which orders no memory (9.7.9.6)."""
    between = m.trace[m.trace.index(old) : m.trace.index(new)]
    met = [e.op for e in between if isinstance(e.op, ops.Collective) and e.agent in (old.agent, new.agent)]
    if not met:
        return ()
    what = met[-1].text.split()[0].split(".")[0]
    where = Sites(tuple(sorted({site_of(op) for op in met}, key=lambda site: site.line)), " and ")
    return say("{}.sync at {} makes lanes wait for each other, and orders no memory", what, where)
