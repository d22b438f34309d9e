"""Fixes for a race, found by trials: the program with one more fence, scope or barrier is run again.

A release belongs to the thread whose write is observed, an acquire to the thread that observes it (PTX ISA 9.0 section
8.8). So the places to try are read off the execution: before each strong write, and after each strong read, by which
the later access's thread knows of the earlier access in time. Changes that turn out to be unnecessary are removed, one
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mcheck.answers.advice.graph import line_of
from mcheck.answers.advice.known_order import explain_idle_fence, is_releasing_fence
from mcheck.answers.advice.scope_mismatch import acquires, narrowest_common_scope, releases, scope_of
from mcheck.base.records import dataclass
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops
from mcheck.ir.amendment import Amendment, Insertion, Replacement
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH

IsFix = Callable[[Sequence[Amendment]], bool]
"""A test whether the program, so edited, is free of a finding, and has no other one in its place."""
MAX_PIECES = 10
"""Maximum number of changes to try."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A change to try, at an operation of the execution."""

    amendment: Amendment
    at: TraceEntry
    kind: str
    """``release``, ``acquire`` or ``scope``."""


def suggest_fences(m: Machine, old: TraceEntry, new: TraceEntry, is_fix: IsFix) -> str:
    """Suggest the fences and scopes that order the accesses of two steps; empty if there are none."""
    way = list(find_steps_between(m, old, new))
    scope = _common_scope(m, [old, *way, new])
    pieces = list(_candidate_pieces(way, scope))
    if not 0 < len(pieces) <= MAX_PIECES or not is_fix([p.amendment for p in pieces]):
        return ""
    left = pieces
    for piece in reversed(pieces):
        fewer = [p for p in left if p is not piece]
        if fewer and is_fix([p.amendment for p in fewer]):
            left = fewer
    return _describe_fix(m, old, new, way, left, scope, is_fix)


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
    """Yield the changes to try between two steps, each statement once."""
    seen: set[object] = set()
    fence = ops.Fence(sem="acq_rel", scope=scope, text=f"fence.acq_rel.{scope}")
    for entry in way:
        op, span = ops.performed_operation(entry.op), entry.op.span
        if span is None or span in seen:
            continue
        seen.add(span)
        strong = scope_of(op) is not None and getattr(op, "sem", "weak") != "weak"
        if strong and isinstance(op, ops.ScalarWrite | ops.MbarrierArrive) and not releases(op):
            yield Piece(Insertion(fence, after=False, span=span), entry, "release")
        if strong and op.facets.observes and not acquires(op):
            yield Piece(Insertion(fence, after=True, span=span), entry, "acquire")
        if strong and WIDTH[scope_of(op) or "sys"] < WIDTH[scope]:
            yield Piece(Replacement(_with_scope(scope), span), entry, "scope")


# --- in words ---------------------------------------------------------------------------------------------------


def _describe_fix(
    m: Machine, old: TraceEntry, new: TraceEntry, way: Sequence[TraceEntry], pieces: Sequence[Piece], scope: str,
    is_fix: IsFix
) -> str:  # fmt: skip
    """Describe what to do at each place, and why what is there is not enough."""
    places = [
        f"{'before' if piece.kind == 'release' else 'after'} line {line_of(piece.at.op)}"
        for piece in pieces
        if piece.kind != "scope"
    ]
    said = [f"execute fence.acq_rel.{scope} {_join_parts(places)}"] if places else []
    said += [
        f"give the {_base_name(ops.performed_operation(piece.at.op))} of line {line_of(piece.at.op)} scope .{scope}"
        for piece in pieces
        if piece.kind == "scope"
    ]
    instead = _suggest_semantics(pieces, scope, is_fix)
    text = f"{_join_parts(said)}{instead}{_explain_release(m, pieces)}."
    return " ".join([text[0].upper() + text[1:], *_explain_present_fences(m, old, new, way, pieces)])


def _join_parts(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _suggest_semantics(pieces: Sequence[Piece], scope: str, is_fix: IsFix) -> str:
    """Suggest semantics of the operations instead of separate fences, if that is a fix as well."""
    if all(p.kind == "scope" for p in pieces):
        return ""
    halves: dict[object, set[str]] = {}
    at: dict[object, Op] = {}
    for piece in pieces:
        halves.setdefault(piece.at.op.span, set()).add(piece.kind)
        at[piece.at.op.span] = ops.performed_operation(piece.at.op)
    changes: list[Amendment] = []
    said = []
    for span, op in at.items():
        kinds = halves[span] - {"scope"}
        if getattr(op, "volatile", False) or getattr(op, "sem", "") not in ("relaxed", "acquire", "release"):
            return ""
        sem = kinds.pop() if len(kinds) == 1 and getattr(op, "sem", "") == "relaxed" else "acq_rel" if kinds else ""
        sem = sem or str(getattr(op, "sem", ""))
        if sem == "acq_rel" and not isinstance(op, ops.Atomic):
            return ""
        assert span is not None
        changes.append(Replacement(_with_semantics(sem, scope), span))  # type: ignore[arg-type]
        said.append(f"the {_base_name(op)} of line {line_of(op)} .{sem}.{scope}")
    if not is_fix(changes):
        return ""
    return f", or make {_join_parts(said)}"


def _with_semantics(sem: str, scope: str) -> Callable[[Op], Op]:
    """Other operations may stand at the same place of a module."""
    return lambda op: op if scope_of(op) is None else replace(op, sem=sem, scope=scope)  # type: ignore[call-arg]


def _with_scope(scope: str) -> Callable[[Op], Op]:
    return lambda op: op if scope_of(op) is None else replace(op, scope=scope)  # type: ignore[call-arg]


def _base_name(op: Op) -> str:
    """Return the name of an instruction without its modifiers."""
    match op:
        case ops.Atomic():
            return "red" if op.is_red else "atom"
        case ops.Load():
            return "ld"
        case ops.Store():
            return "st"
    return "arrive" if isinstance(op, ops.MbarrierArrive) else "wait"


def _last_acquire(m: Machine, at: TraceEntry) -> TraceEntry | None:
    """Return the last acquire of an agent before a step."""
    behind = m.trace[: m.trace.index(at)]
    return next((e for e in reversed(behind) if e.agent == at.agent and e.signal < 0 and _may_acquire(e.op)), None)


def _may_acquire(op: Op) -> bool:
    facets = ops.performed_operation(op).facets
    return facets.synchronises or facets.observes


def _explain_release(m: Machine, pieces: Sequence[Piece]) -> str:
    """Explain which thread passes on what, where a release is missing after an acquire."""
    gives = [p.at for p in pieces if p.kind == "release"]
    taken = _last_acquire(m, gives[0]) if len(gives) == 1 else None
    if taken is None:
        return ""
    who = m.name(m.agents[taken.agent])
    return f": {who} hands on at line {line_of(gives[0].op)} what it took over at line {line_of(taken.op)}"


def _explain_present_fences(
    m: Machine, old: TraceEntry, new: TraceEntry, way: Sequence[TraceEntry], pieces: Sequence[Piece]
) -> Iterator[str]:
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
        yield from (f"{text[0].upper()}{text[1:]}." for text in list(dict.fromkeys(filter(None, texts)))[:1])
    theirs = [e for e in way if e.agent == old.agent and isinstance(e.op, ops.Fence) and releases(e.op)]
    for piece in pieces:
        taken = _last_acquire(m, piece.at) if piece.kind == "release" and piece.at.agent != old.agent else None
        if theirs and taken is not None and isinstance(taken.op, ops.Barrier):
            yield (
                f"The fence of {m.name(m.agents[old.agent])} at line {line_of(theirs[0].op)} does not do: by the "
                f"letter of 8.8 a fence releases through a write of its own thread, and line {line_of(piece.at.op)} "
                f"is another's. Much production code leaves it at that."
            )
            return
