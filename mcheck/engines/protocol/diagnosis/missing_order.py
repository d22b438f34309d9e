"""Explanation of a missing order between two accesses, and of why the present synchronisation does not count."""

from __future__ import annotations

from mcheck.answers.async_waits import ReadPhase, Wait, explain_insufficient_wait
from mcheck.answers.scope_mismatch import NarrowScope, ScopedOperation, acquires, find_too_narrow, releases, scope_of
from mcheck.engines.protocol.diagnosis.async_groups import count_later_groups, is_modification
from mcheck.engines.protocol.diagnosis.fixes import find_release, only_wgmma_fence, suggest_fix
from mcheck.engines.protocol.diagnosis.source_lines import line_of
from mcheck.engines.protocol.diagnosis.stage_reuse import classify_stage_read
from mcheck.engines.protocol.diagnosis.sync_diagnosis import explain_known_order
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.ir.ops import Op
from mcheck.ir.program import Place

NEEDS_FENCE = frozenset(("RACE004", "RACE006", "RACE007"))
UNORDERED = frozenset(("RACE001", "RACE002", "RACE003"))


def explain_missing_order(m: Machine, code: str, old: Record, new: Record, low: int) -> str:
    """Return the fix for accesses to the byte ``low``, with what is wrong with the fences and waits present."""
    remarks = [suggest_fix(m, code, old, new, low)]
    if code in NEEDS_FENCE:
        remarks.append(_explain_idle_proxy_fences(m, old, new))
    if code == "RACE003" and classify_stage_read(m, old, new, low) is not ReadPhase.NEXT:
        remarks.append(_explain_insufficient_wait(m, old))
    apart = old.agent != new.agent and not old.asynchronous
    if code in UNORDERED and apart and not only_wgmma_fence(m, old, new):
        remarks.append(explain_known_order(m, m.agents[new.agent], m.agents[old.agent], old))
    return " ".join(filter(None, remarks))


def _explain_idle_proxy_fences(m: Machine, old: Record, new: Record) -> str:
    """Explain why no proxy fence of this execution lies on the path between the two."""
    space = "global" if "global" in old.spaces else "shared"
    writer, issuer = m.agents[old.agent], m.agents[new.agent]
    remarks: list[str] = []
    others: dict[int, str] = {}
    for entry in m.trace[old.position :]:
        op = entry.op
        if not isinstance(op, ops.ProxyFence) or op.kind != "async" or op.span is None:
            continue
        agent = m.agents[entry.agent]
        where = f"the fence.proxy.async at line {op.span.line}"
        if not _covers_space(op, space):
            named = ", ".join(sorted(op.spaces)) or op.restrict or "another space"
            remarks.append(f"{where} is for {named}, not for these bytes")
        elif agent is writer:
            release = find_release(m, agent, old.position, entry.step)
            if release is not None:
                remarks.append(f"{where} comes after the hand-over at line {line_of(release)}")
        elif agent is not issuer:
            covers = f"it covers what that thread wrote or took over, not this write of {m.name(writer)}"
            others.setdefault(op.span.line, f"{where} is executed by {m.name(agent)}: {covers}")
    for line, text in others.items():
        mine = [k for k, e in enumerate(m.trace) if m.agents[e.agent] is writer and line_of(e.op) == line]
        if not mine:
            remarks.append(text)
        elif mine[-1] < old.position:  # else lanes execute it side by side
            remarks.append(f"the fence.proxy.async at line {line} comes before line {line_of(old.event.op)}")
    unique = list(dict.fromkeys(remarks))[:2]
    return "; ".join(unique)[:1].upper() + "; ".join(unique)[1:] + "." if unique else ""


def _covers_space(op: ops.ProxyFence, space: str) -> bool:
    spaces = op.spaces | ({op.restrict} if op.restrict else set())
    return not spaces or any(str(s).startswith(space) for s in spaces)


def _explain_insufficient_wait(m: Machine, old: Record) -> str:
    """Explain why a wait of the issuing thread, or else of another one, does not cover this operation."""
    op = old.event.op
    if not old.asynchronous or old.mbarrier_clocks:
        return ""
    behind = [(k, e) for k, e in enumerate(m.trace) if k >= old.position and isinstance(e.op, ops.WaitGroup)]
    mine = [
        Wait(op=e.op, thread=m.name(m.agents[e.agent]), own=True, later=count_later_groups(m, old, k))
        for k, e in behind
        if e.agent == old.agent and isinstance(e.op, ops.WaitGroup)
    ]
    if mine or isinstance(op, ops.Wgmma):  # a group of wgmma is of its warpgroup, whoever waits for it
        return explain_insufficient_wait(op, mine, write=is_modification(old))
    its = {o.span for o in m.agents[old.agent].code}
    others = (
        Wait(op=e.op, thread=m.name(m.agents[e.agent]), own=False, later=None)
        for _, e in behind
        if isinstance(e.op, ops.WaitGroup) and e.op.span not in its
    )
    return explain_insufficient_wait(op, others, write=is_modification(old))


MAX_RELEASES = 2
"""Maximum number of releases that a message names."""


def find_narrow_releases(m: Machine, old: Record, new: Record) -> list[NarrowScope]:
    """Return the releases to the later access's thread whose scope excludes one of the two threads."""
    since = m.trace[old.position :]
    reader = m.agents[new.agent]
    place = m.program.threads[reader.threads[0]].place
    theirs = [e.op for e in since if e.agent == new.agent and e.signal < 0]
    others = [e for e in since if e.agent != new.agent and e.signal < 0]
    if reader.status == "blocked":  # what it waits for in vain is no step of the trace
        theirs.append(reader.code[reader.pc])
    takes = [ScopedOperation(op, place) for op in theirs if acquires(op)]
    gives = [ScopedOperation(e.op, _place(m, e)) for e in others if releases(e.op)]
    pairs = [(give, take) for take in reversed(takes) for give in gives if _may_synchronise(give.op, take.op)]
    reads = [ScopedOperation(op, place) for op in theirs if isinstance(ops.performed_operation(op), ops.ScalarRead)]
    writes = [ScopedOperation(e.op, _place(m, e)) for e in others if isinstance(e.op, ops.ScalarWrite)]
    pairs += [(w, r) for r in reversed(reads) for w in writes if takes and gives and _may_observe(w.op, r.op)]
    return find_too_narrow(pairs)[:MAX_RELEASES]


def _place(m: Machine, entry: TraceEntry) -> Place:
    return m.program.threads[m.agents[entry.agent].threads[0]].place


def _may_observe(write: Op, read: Op) -> bool:
    """Return whether a strong access may return what another one has written, by their constant addresses."""
    one, other = (getattr(ops.performed_operation(op), "address", None) for op in (write, read))
    return isinstance(one, Const) and one == other and scope_of(write) is not None and scope_of(read) is not None


def _may_synchronise(release: Op, acquire: Op) -> bool:
    """Return whether an acquire may observe a release: an arrive and a wait, two accesses to memory, or fences."""
    waits = ops.performed_operation(acquire)
    if isinstance(release, ops.MbarrierArrive) and isinstance(waits, ops.MbarrierWait):
        one, other = release.address, waits.address
        apart = isinstance(one, Const) and isinstance(other, Const) and (one.value - other.value) % SHARED_WINDOW
        return not apart
    kinds = isinstance(release, ops.MbarrierArrive), isinstance(waits, ops.MbarrierWait)
    return kinds == (False, False) or isinstance(release, ops.Fence) or isinstance(acquire, ops.Fence)
