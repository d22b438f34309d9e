"""Fixes for a race, found by trials: the program with one more fence, scope or barrier is run again.

A release belongs to the thread whose write is observed, an acquire to the thread that observes it (PTX ISA 9.0 section
8.8). So the places to try are read off the execution: before each strong write, and after each strong read, by which
the later access's thread knows of the earlier access in time. Changes that turn out to be unnecessary are removed, one
after the other: none for which fewer executions speak than for all of the changes, since the one that needs it may be
among the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mcheck.answers.advice.graph import site_of
from mcheck.answers.advice.known_order import explain_idle_fence, is_releasing_fence, is_wide_fence
from mcheck.answers.advice.memory_orders import change_of, order_with
from mcheck.answers.advice.scope_mismatch import acquires, named_scope, narrowest_common_scope, releases, scope_of
from mcheck.base.phrase import Phrase, capital, say
from mcheck.base.records import dataclass, replace
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Change, Fix, Fixes, Insert, Note, Point, Property, insertions
from mcheck.ir import ops
from mcheck.ir.amendment import Amendment, Insertion, Replacement
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether the executions of an edited program that were followed are free of a finding, with no other one in its
    place; how many these were, and whether they are all. ``leaves``: how many races on what it touches
    are left, whichever statement of an unrolled loop or round of a ring has them.
    """

    passed: bool
    leaves: int = 0
    executions: int = 0
    whole: bool = False

    def __bool__(self) -> bool:
        return self.passed

    def replaces(self, other: Trial) -> bool:
        """Whether what passed here is as sure as what passed ``other``: on all executions, or on as many."""
        return self.passed and (self.whole or (not other.whole and self.executions >= other.executions))


@dataclass(frozen=True, slots=True)
class Followed:
    """What the executions of an edited program that were followed have shown, and whether these are all."""

    findings: tuple[Finding, ...]
    executions: int
    whole: bool


@dataclass(frozen=True, slots=True)
class IsFix:
    """Tries the program, edited. ``mended``: the places of a barrier that mended other races of the program, and the
    numbers by which they were found; races of one loop that was unrolled are mended alike. ``finding`` has the fix that
    follows from the accesses.
    """

    tried: Callable[[Sequence[Amendment]], Trial]
    mended: set[object]
    finding: Finding

    def __call__(self, amendments: Sequence[Amendment]) -> Trial:
        return self.tried(amendments)


MAX_PIECES = 10
"""Maximum number of changes to try."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A change to try, at an operation of the execution."""

    amendment: Amendment
    at: TraceEntry
    kind: str
    """``release``, ``acquire`` or ``scope``."""


def suggest_fences(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fix | None:
    """Suggest the fences and scopes that order the accesses of two steps; ``None`` if there are none."""
    way = list(find_steps_between(m, old, new))
    strong = (e.op for e in way if _is_strong(e.op))
    scope = named_scope(_common_scope(m, [old, *way, new]), strong)
    pieces = list(_candidate_pieces(way, scope))
    if not 0 < len(pieces) <= MAX_PIECES:
        return None
    tried = is_fix([p.amendment for p in pieces])
    if not tried:
        return None
    left = pieces
    for piece in reversed(pieces):
        fewer = [p for p in left if p is not piece]
        if fewer and (trial := is_fix([p.amendment for p in fewer])).replaces(tried):
            left, tried = fewer, trial
    fix = _describe_fix(m, old, new, way, left, scope, is_fix)
    return fix if tried.whole else fix.noted(Note((f"Tried on {tried.executions} executions; others may lack more",)))


def _as_told(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """The fix that follows from the accesses, if it is fences at places and these are a fix."""
    found = is_fix.finding.fixes
    steps = [step for fix in found for step in fix.steps]
    scopes = [step.codes[0].removeprefix("fence.acq_rel.") for step in steps if isinstance(step, Insert)]
    if not steps or len(scopes) < len(steps) or not all(scope in WIDTH for scope in scopes):
        return ()
    spans = {site_of(op): op.span for entry in (old, new) for op in m.agents[entry.agent].code}
    pieces: list[Amendment] = []
    for step, scope in zip(insertions(found), scopes, strict=True):
        fence = ops.Fence(sem="acq_rel", scope=scope, text=step.codes[0])
        for point in step.points:
            if (span := spans.get(point.site)) is None:
                return ()
            pieces.append(Insertion(fence, after=point.after, span=span))
    return found if is_fix(pieces) else ()


def suggest_fences_between(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> Fixes:
    """``suggest_fences`` as a strategy; what follows from the accesses, if that is a fix with fewer fences."""
    fix = suggest_fences(m, old, new, is_fix)
    if fix is None:
        return ()
    counts = [sum(len(one.points) for one in insertions(fixes)) for fixes in (is_fix.finding.fixes, (fix,))]
    return (_as_told(m, old, new, is_fix) if counts[0] < counts[1] else ()) or (fix,)


def find_access_steps(m: Machine, problem: Problem) -> tuple[TraceEntry, TraceEntry] | None:
    """Return the steps of the two accesses of a problem."""
    if not 0 <= problem.first_step < problem.last_step <= len(m.trace):
        return None
    old, new = m.trace[problem.first_step], m.trace[problem.last_step - 1]
    return None if old.signal >= 0 or new.signal >= 0 else (old, new)


def find_steps_between(m: Machine, old: TraceEntry, new: TraceEntry) -> Iterator[TraceEntry]:
    """Yield the steps that are after one step and before another one in time."""
    first, last = m.trace.index(old), m.trace.index(new)
    for entry in m.trace[first + 1 : last]:
        behind = entry.agent == old.agent or entry.time[old.agent] >= old.step
        known = entry.agent == new.agent or new.time[entry.agent] >= entry.step
        if entry.signal < 0 and behind and known:
            yield entry


def _common_scope(m: Machine, entries: Sequence[TraceEntry]) -> str:
    """Return the narrowest scope that contains all threads of some steps."""
    places = {m.agents[e.agent].threads[0] for e in entries}
    first, *others = (m.program.threads[t].place for t in sorted(places))
    return max((narrowest_common_scope(first, other) for other in others), key=WIDTH.__getitem__, default="cta")


def _candidate_pieces(way: Sequence[TraceEntry], scope: str) -> Iterator[Piece]:
    """Yield the changes to try between two steps, each statement once; no fence where its thread has one."""
    seen: set[object] = set()
    fences = [(entry.agent, entry.step) for entry in way if is_wide_fence(entry.op, scope)]
    fence = ops.Fence(sem="acq_rel", scope=scope, text=f"fence.acq_rel.{scope}")
    for entry in way:
        op, span = ops.performed_operation(entry.op), entry.op.span
        if span is None or span in seen:
            continue
        seen.add(span)
        strong = _is_strong(op)
        own = [step for agent, step in fences if agent == entry.agent]
        gives, takes = any(step < entry.step for step in own), any(step > entry.step for step in own)
        if strong and isinstance(op, ops.ScalarWrite | ops.MbarrierArrive) and not (releases(op) or gives):
            yield Piece(Insertion(fence, after=False, span=span), entry, "release")
        if strong and op.facets.observes and not (acquires(op) or takes):
            yield Piece(Insertion(fence, after=True, span=span), entry, "acquire")
        if strong and WIDTH[scope_of(op) or "sys"] < WIDTH[scope]:
            yield Piece(Replacement(_with_scope(scope), span), entry, "scope")


def _is_strong(op: Op) -> bool:
    return scope_of(op) is not None and getattr(ops.performed_operation(op), "sem", "weak") != "weak"


# --- the fix ----------------------------------------------------------------------------------------------------


def _describe_fix(
    m: Machine, old: TraceEntry, new: TraceEntry, way: Sequence[TraceEntry], pieces: Sequence[Piece], scope: str,
    is_fix: IsFix
) -> Fix:  # fmt: skip
    """What to do at each place, and why what is there is not enough."""
    places = [Point(site_of(p.at.op), after=p.kind == "acquire") for p in pieces if p.kind != "scope"]
    fences = (Insert(codes=(f"fence.acq_rel.{scope}",), points=tuple(places)),) if places else ()
    narrow = [ops.performed_operation(piece.at.op) for piece in pieces if piece.kind == "scope"]
    fix = Fix(
        (*fences, *(change_of(op, Property.SCOPE, scope) for op in narrow)),
        others=_suggest_semantics(pieces, scope, is_fix),
        why=_explain_release(m, pieces),
    )
    return fix.noted(*map(Note, _explain_present_fences(m, old, new, way, pieces)))


def _suggest_semantics(pieces: Sequence[Piece], scope: str, is_fix: IsFix) -> tuple[Change, ...]:
    """Suggest semantics of the operations instead of separate fences, if that is a fix as well."""
    if all(p.kind == "scope" for p in pieces):
        return ()
    halves: dict[object, set[str]] = {}
    at: dict[object, Op] = {}
    for piece in pieces:
        halves.setdefault(piece.at.op.span, set()).add(piece.kind)
        at[piece.at.op.span] = ops.performed_operation(piece.at.op)
    changes: list[Amendment] = []
    said = []
    for span, op in at.items():
        sem = order_with(op, halves[span] - {"scope"})
        if sem is None:
            return ()
        assert span is not None
        changes.append(Replacement(_with_semantics(sem, scope), span))  # type: ignore[arg-type]
        said.append(change_of(op, Property.SEMANTICS, f".{sem}.{scope}"))
    return tuple(said) if is_fix(changes) else ()


def _with_semantics(sem: str, scope: str) -> Callable[[Op], Op]:
    """Other operations may stand at the same place of a module."""
    return lambda op: op if scope_of(op) is None else replace(op, sem=sem, scope=scope)  # type: ignore[call-arg]


def _with_scope(scope: str) -> Callable[[Op], Op]:
    return lambda op: op if scope_of(op) is None else replace(op, scope=scope)  # type: ignore[call-arg]


def _last_acquire(m: Machine, at: TraceEntry) -> TraceEntry | None:
    """Return the last acquire of an agent before a step."""
    behind = m.trace[: m.trace.index(at)]
    return next((e for e in reversed(behind) if e.agent == at.agent and e.signal < 0 and _may_acquire(e.op)), None)


def _may_acquire(op: Op) -> bool:
    facets = ops.performed_operation(op).facets
    return facets.synchronises or facets.observes


def _explain_release(m: Machine, pieces: Sequence[Piece]) -> Phrase:
    """Explain which thread passes on what, where a release is missing after an acquire."""
    gives = [p.at for p in pieces if p.kind == "release"]
    taken = _last_acquire(m, gives[0]) if len(gives) == 1 else None
    if taken is None:
        return ()
    who = m.name(m.agents[taken.agent])
    return say("{} hands on at {} what it took over at {}", who, site_of(gives[0].op), site_of(taken.op))


def _explain_present_fences(
    m: Machine, old: TraceEntry, new: TraceEntry, way: Sequence[TraceEntry], pieces: Sequence[Piece]
) -> Iterator[Phrase]:
    """Explain why the present fences do not suffice.

    One comes after the hand-over, or is too narrow, or is the one before a barrier, in another thread than the one
    whose write is observed after it.
    """
    places = [m.program.threads[m.agents[e.agent].threads[0]].place for e in (old, new)]
    at = getattr(old.op, "address", None)
    address = at.value if isinstance(at, Const) else None
    for piece in pieces:
        own = [e for e in m.trace if e.agent == piece.at.agent and e.signal < 0 and is_releasing_fence(e.op)]
        own = [e for e in own if e.agent != old.agent or e.step > old.step] if piece.kind == "release" else []
        texts = (explain_idle_fence(m.program, e, piece.at, address, places[0], places[1]) for e in own)
        yield from map(capital, list(dict.fromkeys(filter(None, texts)))[:1])
    theirs = [e for e in way if e.agent == old.agent and isinstance(e.op, ops.Fence) and releases(e.op)]
    for piece in pieces:
        taken = _last_acquire(m, piece.at) if piece.kind == "release" and piece.at.agent != old.agent else None
        if theirs and taken is not None and isinstance(taken.op, ops.Barrier):
            yield say(
                "The fence of {} at {} does not do: by the letter of 8.8 a fence releases through a write of its own "
                "thread, and {} is another's. Much production code leaves it at that",
                m.name(m.agents[old.agent]),
                site_of(theirs[0].op),
                site_of(piece.at.op),
            )
            return
