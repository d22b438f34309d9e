"""Barriers that would order two accesses, and barriers that were completed by other threads than intended.

A barrier with a count is complete once so many threads have arrived, whichever they are (PTX ISA 9.0 section 9.7.13.1).
Fixes are found by trials, as in ``mcheck.engines.protocol.fix_search.trials``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from mcheck.answers.advice.graph import site_of
from mcheck.base.errors import Span
from mcheck.base.phrase import Aside, Phrase, Site, Sites, say
from mcheck.base.records import dataclass, replace
from mcheck.engines.protocol.diagnosis.iteration import iteration_at
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.operations.thread_names import format_threads
from mcheck.engines.protocol.state.sync_objects import BarrierState, SyncOperation
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.findings.fix import Change, Condition, Fix, Fixes, Given, Insert, Point, Property, advise
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion, Replacement
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Place

WARP = 32
BARRIERS = range(1, 16)
MAX_PLACES = 7
"""Number of places of a barrier to try."""


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
    return (text, *(explain_double_arrival(m, passed) or _suggest_other_barrier(m, passed, is_fix)))


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
    used: set[int] = set()
    cta = m.program.threads[m.agents[passed.arrivals[0].agent].threads[0]].place.cta
    for thread in m.program.threads:
        for op in thread.code:
            if not isinstance(op, ops.Barrier) or not isinstance(op.barrier, Const) or op.span is None:
                continue
            used.add(op.barrier.value)
            if op.barrier.value == passed.key[-1] and thread.place.cta == cta:
                users.setdefault(op.span, set()).add(thread.role)
                warps.add(thread.place.own_warp)
    free = next((n for n in BARRIERS if n not in used), None)
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


def suggest_barrier(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """Suggest a barrier that orders two accesses, if there is a place for it.

    Not where they are already ordered in time, nor where mbarriers are meant to order them.
    """
    one, other = (m.program.threads[m.agents[e.agent].threads[0]].place for e in (old, new))
    if one.cta != other.cta or _use_mbarriers(m, old, new):
        return ()
    if one.warp == other.warp:
        mask = _warp_mask(m, one)
        meet = ops.WarpSync(mask=Const(mask), text=f"bar.warp.sync 0x{mask:x}")
        place = _find_place(m, meet, old, new, is_fix)
        why = _explain_shuffle(m, old, new)
        return (Fix((Insert(codes=(meet.text,), points=(place,)),), why=why),) if place is not None else ()
    if new.time[old.agent] >= old.step:
        return ()
    sync = ops.Barrier(kind="sync", barrier=Const(0), text="bar.sync 0")
    place = _find_place(m, sync, old, new, is_fix)
    given = (Given(Condition.EACH_OF_CTA),)
    return (Fix((Insert(codes=(sync.text,), points=(place,), given=given),)),) if place is not None else ()


def _executed_by_all(m: Machine, op: Op, place: Place, *, warp: bool) -> bool:
    """Return whether all threads of a CTA, or of a warp, execute a statement."""
    threads = [t for t in m.program.threads if t.place.cta == place.cta and (not warp or t.place.warp == place.warp)]
    codes = {id(t.code): t.code for t in threads}.values()
    return all(any(o.span == op.span for o in code) for code in codes)


def _use_mbarriers(m: Machine, old: TraceEntry, new: TraceEntry) -> bool:
    """Return whether the threads of two steps have waited for an mbarrier."""
    waits = (e for e in m.trace if isinstance(ops.performed_operation(e.op), ops.MbarrierWait))
    return any(e.agent in (old.agent, new.agent) for e in waits)


def _warp_mask(m: Machine, place: Place) -> int:
    """Return the mask of the lanes that exist in a warp."""
    lanes = [t.place.lane for t in m.program.threads if t.place.own_warp == place.own_warp]
    return sum(1 << lane for lane in lanes)


def _find_place(m: Machine, sync: Op, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Point | None:
    """Return a place where a barrier is a fix: before the later access, after the earlier one, or in between."""
    place = m.program.threads[m.agents[new.agent].threads[0]].place
    places = sorted(_candidate_places(m, old, new), key=lambda one: one[0] not in is_fix.mended)
    for number, op, after in places:
        assert op.span is not None
        here = Insertion(sync, after=after, span=op.span)
        if _executed_by_all(m, op, place, warp=isinstance(sync, ops.WarpSync)) and is_fix([here]):
            is_fix.mended.add(number)
            return Point(site_of(op), after)
    return None


def _candidate_places(m: Machine, old: TraceEntry, new: TraceEntry) -> Iterator[tuple[int, Op, bool]]:
    """Yield the places to try: a number that says how each is found, a statement, and whether it is behind that."""
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
    for number, (op, after) in enumerate(options[:MAX_PLACES]):
        if op.span is not None and (op.span, after) not in seen:
            seen.add((op.span, after))
            yield number, op, after


def _explain_shuffle(m: Machine, old: TraceEntry, new: TraceEntry) -> Phrase:
    """Explain that lanes exchanged values in between, which orders no memory (9.7.9.6)."""
    between = m.trace[m.trace.index(old) : m.trace.index(new)]
    met = [e.op for e in between if isinstance(e.op, ops.Collective) and e.agent in (old.agent, new.agent)]
    if not met:
        return ()
    what = met[-1].text.split()[0].split(".")[0]
    where = Sites(tuple(sorted({site_of(op) for op in met}, key=lambda site: site.line)), " and ")
    return say("{}.sync at {} makes lanes wait for each other, and orders no memory", what, where)
