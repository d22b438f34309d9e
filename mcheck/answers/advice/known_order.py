"""Diagnosis of incomplete synchronisation: what one thread knows of another, and which half is missing (8.8)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, Step, site_of
from mcheck.answers.advice.scope_mismatch import RELEASES, acquires, narrowest_common_scope, releases
from mcheck.answers.step_text import text_of
from mcheck.base.phrase import Aside, Phrase, join, say
from mcheck.findings.fix import Change, Fix, Known, Note, Property
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Place, Program
from mcheck.ir.scopes import WIDTH


def explain_known_order(g: ExecutionGraph) -> tuple[Known | Note, ...]:
    """How far the later access's agent knows what the other one did, and why that is too little."""
    old, known = g.old, g.new.time[g.old.agent]
    one, other = g.name(g.new.agent), g.name(old.agent)
    last = g.step_at(old.agent, known)
    if last is None:
        return (Note((f"Nothing that {other} did is handed to {one}",), detail=True),)
    number = g.steps.index(last) + 1 if g.numbered else None
    if last.step < old.step:
        return (Known(one, other, site_of(last.op), text_of(last.op), number),)
    if last.step == old.step and g.agents[old.agent].ended:
        return (Note((f"{one} comes after the end of {other} in time alone: an exit hands nothing over",)),)
    where = Aside(f" ({text_of(last.op)}{f', step {number}' if number else ''})")
    lacks = _explain_missing_half(g, last)
    return (Note(say("{} comes after {}{} of {} in time alone: {}", one, site_of(last.op), where, other, lacks)),)


def is_wide_fence(op: Op, scope: str) -> bool:
    """Whether a fence releases and acquires at a scope, or a wider one."""
    return isinstance(op, ops.Fence) and op.sem in ("acq_rel", "sc") and WIDTH[op.scope] >= WIDTH[scope]


def suggest_strong_access(g: ExecutionGraph, given: Step, scope: str) -> Fix | None:
    """That the weak access has to be strong, if the two are to the word of the atomic ``given`` and the other one is an
    atomic: strong accesses do not race (8.7), and a fence before an atomic does not order the atomic itself.
    """
    word = getattr(ops.performed_operation(given.op), "address", None)
    weak = [a for a in (g.old, g.new) if not _is_strong(a.op)]
    atomic = any(_is_relaxed_atomic(a.op) for a in (g.old, g.new))
    if not atomic or len(weak) != 1 or word != Const(g.old.event.address or 0):
        return None
    what, code = ("write", "st") if weak[0].write else ("read", "ld")
    site = site_of(weak[0].op)
    change = Change(
        what=Property.STRENGTH, sites=(site,), new=f"{code}.relaxed.{scope}", subject=say("the {} at {}", what, site)
    )
    return Fix((change,), why=say("a weak one races with the atomic at {}", site_of(given.op)))


def _is_strong(op: Op) -> bool:
    """Whether an operation is strong (8.4): relaxed at least."""
    return getattr(ops.performed_operation(op), "sem", "weak") != "weak"


def _is_relaxed_atomic(op: Op) -> bool:
    atomic = ops.performed_operation(op)
    return isinstance(atomic, ops.Atomic) and atomic.sem == "relaxed"


def _explain_missing_half(g: ExecutionGraph, last: Step) -> Phrase:
    """Which half is missing, where the other agent knows of the step ``last`` after the access."""
    if isinstance(last.op, ops.CpAsyncArrive):
        return ("it tracks the cp.async before it, and nothing else",)
    if last.op.facets.signals and last.op.facets.asynchronous and last.op.facets.writes:  # not cumulative (8.9.1.1)
        return ("its completion covers its own accesses, and nothing before them",)
    if isinstance(last.op, ops.Collective):
        return ("lanes only wait for each other there; bar.warp.sync also orders memory",)
    old, places = g.old, (g.place(g.old.agent), g.place(g.new.agent))
    fences = [e for e in g.own_steps(old.agent, old.position) if is_releasing_fence(e.op)]
    why = (explain_idle_fence(g.program, e, last, old.event.address, *places) for e in fences)
    idle = [text for text in why if text]
    if releases(last.op) or len(idle) < len(fences):
        return say("the release is there, {}", _explain_missing_acquire(g, last))
    way = "memory is handed over by a release there, or a release fence before it, and an acquire where that is seen"
    return join(((way,), *dict.fromkeys(idle[:2])), "; ", "; ")


def _explain_missing_acquire(g: ExecutionGraph, last: Step) -> Phrase:
    """What is wrong with the acquire of a release, the step ``last`` of another agent (8.9.2 and 8.8)."""
    taken = [e.op for e in g.own_steps(g.new.agent, g.steps.index(last) + 1) if acquires(e.op)]
    if not taken:
        return ("and an acquire is missing where it is seen, or behind that a fence that acquires",)
    return say(
        "but the acquire at {} takes over something else: what it reads or waits for has to be "
        "that, or made of it by atomics whose scopes include each other's threads",
        site_of(taken[-1]),
    )


def is_releasing_fence(op: Op) -> bool:
    """Whether a fence releases, possibly for another proxy (8.8, 9.7.13.4)."""
    return (isinstance(op, ops.Fence) and op.sem in RELEASES) or (
        isinstance(op, ops.ProxyFence) and op.half == "release"
    )


def explain_idle_fence(
    program: Program, fence: Step, last: Step, address: int | None, writer: Place, reader: Place
) -> Phrase:  # fmt: skip
    """Why a releasing fence does not release a write of its thread; empty if it does.

    ``last`` is the step that hands the bytes over.
    """
    op = fence.op
    assert isinstance(op, ops.Fence | ops.ProxyFence)
    where = say("the fence at {}", site_of(op))
    if fence.step > last.step:
        return say("{} comes after it", where)
    if op.restrict is not None and address is not None:
        instance = program.memory.find(address)
        home = instance.cta if instance is not None else None
        if home is None or (op.restrict == "shared::cta" and home != writer.cta):
            return say("{} is for {}, not for these bytes", where, op.restrict)
    if op.scope is not None and WIDTH[op.scope] < WIDTH[narrowest_common_scope(writer, reader)]:
        return say("{} has scope .{}, and needs .{}", where, op.scope, narrowest_common_scope(writer, reader))
    return ()
