"""Suggested fixes: what would order two accesses, and where to put it.

A remedy names instructions and lines: ``Execute X after line N`` and ``Execute X before line N`` mean what they say,
and the tests carry them out.
"""

from __future__ import annotations

from mcheck.answers.async_waits import (
    ReadPhase,
    alternative_order_before_issue,
    order_before_issue,
    order_before_wgmma,
    pending_groups_note,
    wait_for_completion,
)
from mcheck.answers.scope_mismatch import join_advice, narrowest_common_scope, scope_of, suggest_wider_scope
from mcheck.engines.protocol.diagnosis.async_groups import (
    explain_late_wait,
    find_group_wait,
    find_wait_before_own_access,
    has_waited,
    is_committed,
    is_modification,
    wait_of_group,
)
from mcheck.engines.protocol.diagnosis.source_lines import entry_at_step, line_of
from mcheck.engines.protocol.diagnosis.stage_reuse import classify_stage_read
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.engines.protocol.state.vector_clocks import Vector
from mcheck.findings import catalogue
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import WIDTH


def suggest_fix(m: Machine, code: str, old: Record, new: Record, low: int) -> str:
    """Return the fix for two accesses to the byte ``low``; the one of the catalogue by default."""
    match code:
        case "RACE004" | "RACE006":
            return _suggest_proxy_fence(m, old, new)
        case "RACE007":
            return _suggest_fence_after_wait(m, old) or catalogue.get(code).remedy
        case "RACE009":
            return _suggest_tensormap_fences(m, old, new)
        case "RACE001" | "RACE002" | "RACE003":
            return _suggest_order(m, code, old, new, low)
    return catalogue.get(code).remedy


# --- proxy fences -----------------------------------------------------------------------------------------------


def _suggest_proxy_fence(m: Machine, old: Record, new: Record) -> str:
    first, second = line_of(old.event.op), line_of(new.event.op)
    if m.setup.many_ctas and old.cta != new.cta:
        return (
            f"Execute fence.proxy.async after line {first}, before its CTA hands over, "
            f"and execute fence.proxy.async before line {second}, after what takes over."
        )
    fence = "fence.proxy.async.global" if "global" in old.spaces else "fence.proxy.async.shared::cta"
    agent = m.agents[old.agent]
    over = find_release(m, agent, old.position)
    if over is not None and over is not new.event.op:
        who = "in every thread that executes it, " if _executed_by_several(m, old.event.op) else ""
        return f"Execute {fence} after line {first}, {who}before the hand-over at line {line_of(over)}."
    if old.agent == new.agent:
        return f"Execute {fence} after line {first}, before line {second}."
    return f"Execute {fence} after line {first}, in every thread that executes it, before it hands the bytes over."


def _executed_by_several(m: Machine, op: Op) -> bool:
    """Whether several threads execute a statement."""
    return sum(any(o.span == op.span for o in t.code) for t in m.program.threads) > 1


def _suggest_fence_after_wait(m: Machine, old: Record) -> str:
    for agent, step in old.waits:
        waited = entry_at_step(m, m.agents[agent], step)
        if waited is not None:
            return f"Execute fence.proxy.async.shared::cta after line {line_of(waited.op)}, which waits for the copy."
    return ""


def _suggest_tensormap_fences(m: Machine, old: Record, new: Record) -> str:
    """Return the missing halves of the tensormap fence, or what is wrong with the present ones."""
    writer, reader = (m.program.threads[m.agents[r.agent].threads[0]].place for r in (old, new))
    scope = max(narrowest_common_scope(writer, reader), "gpu", key=WIDTH.__getitem__)
    halves = [_suggest_tensormap_release(m, old, scope), _suggest_tensormap_acquire(m, old, new, scope)]
    text = " and ".join(filter(None, halves))
    if not text:
        return catalogue.get("RACE009").remedy
    between = "; between the two, threads need a release and an acquire of that scope" if old.agent != new.agent else ""
    return f"{text[0].upper()}{text[1:]}{between}."


def _suggest_tensormap_release(m: Machine, old: Record, scope: str) -> str:
    """Return what is wrong with the release half, empty if nothing is."""
    there = [e.op for e in m.trace[old.position :] if e.agent == old.agent and _is_tensormap_fence(e.op, "release")]
    if isinstance(old.event.op, ops.TensormapCopyFence):
        there.append(old.event.op)
    if not there:
        return f"execute fence.proxy.tensormap::generic.release.{scope} after line {line_of(old.event.op)}"
    return _suggest_tensormap_scope(there, scope)


def _suggest_tensormap_acquire(m: Machine, old: Record, new: Record, scope: str) -> str:
    """Return what is wrong with the acquire half, which comes after the write and names the map."""
    there = [e for e in m.trace if e.agent == new.agent and _is_tensormap_fence(e.op, "acquire")]
    own = old.agent == new.agent
    behind = [e.op for e in there if (e.step > old.step if own else e.time[old.agent] >= old.step)]
    name = m.label(new.event.address)
    fence = f"fence.proxy.tensormap::generic.acquire.{scope} [{name}], 128 before line {line_of(new.event.op)}"
    if not there:
        return f"execute {fence}"
    if not behind:
        over = f"line {line_of(old.event.op)}" if own else f"what {m.name(m.agents[old.agent])} hands over"
        return f"execute {fence}, for the one at line {line_of(there[-1].op)} comes before {over}"
    named = [op for op in behind if not _names_other_map(op, new.event.address)]
    if not named:
        return f"execute {fence}, for the one at line {line_of(behind[-1])} names another map"
    return _suggest_tensormap_scope(named, scope)


def _suggest_tensormap_scope(fences: list[Op], scope: str) -> str:
    """Return what is wrong with the scope of halves; empty if one of them is wide enough."""
    given = [scope_of(op) or "sys" for op in fences]
    if any(WIDTH[one] >= WIDTH[scope] for one in given):
        return ""
    return f"give scope .{scope} instead of .{given[-1]} at line {line_of(fences[-1])}"


def _names_other_map(op: Op, address: int) -> bool:
    return isinstance(op, ops.ProxyFence) and isinstance(op.address, Const) and op.address.value != address


def _is_tensormap_fence(op: Op, half: str) -> bool:
    return isinstance(op, ops.ProxyFence) and op.kind == "tensormap" and op.half == half


# --- order ------------------------------------------------------------------------------------------------------


def _suggest_order(m: Machine, code: str, old: Record, new: Record, low: int) -> str:
    issuer, owner = m.agents[new.agent], m.agents[old.agent]
    first, second = line_of(old.event.op), line_of(new.event.op)
    if only_wgmma_fence(m, old, new):
        return order_before_wgmma(first, second, own=old.agent == new.agent and not old.asynchronous)
    if code == "RACE003" and old.asynchronous:
        return _suggest_completion_wait(m, old, new, low)
    elected = _find_elected_lane(m, owner, issuer, old)
    if elected is not None:
        lane, arrive = elected
        return (
            f"Execute bar.warp.sync 0xffffffff after line {first}: at line {line_of(arrive.op)} {m.name(lane)} arrives "
            f"for its warp, and a release covers what its own thread did."
        )
    if code == "RACE001" and (scope := _suggest_scope(m, old, new)):
        return join_advice(scope, catalogue.get(code).remedy)
    if code == "RACE003":
        return order_before_issue(first, second, fence=old.proxy == "GEN" and new.proxy == "ASYNC")
    return catalogue.get(code).remedy


def only_wgmma_fence(m: Machine, old: Record, new: Record) -> bool:
    """Return whether only a wgmma.fence is missing between an access and the reads of a wgmma (8.9.1.1)."""
    if not isinstance(new.event.op, ops.Wgmma) or not _is_known_complete(
        m, old, new.agent, m.agents[new.agent].time, new.step
    ):
        return False
    fences = [e for e in m.trace if e.agent == new.agent and isinstance(e.op, ops.WgmmaFence)]
    return not fences or not _is_known_complete(m, old, new.agent, fences[-1].time, fences[-1].step)


def _is_known_complete(m: Machine, old: Record, agent: int, time: Vector, step: int) -> bool:
    """Return whether an access happens before a step of an agent with this time."""
    if not old.asynchronous:
        return (old.agent == agent and old.step < step) or time[old.agent] >= old.step
    signalled = any(time[bar] > signal.clock_bound for bar, signal in _first_signals(m, old).items())
    return signalled or any(time[waited] >= at for waited, at in old.waits)


def _suggest_scope(m: Machine, old: Record, new: Record) -> str:
    """Return the scope that two accesses need."""
    one, other = ((r.event, m.program.threads[m.agents[r.agent].threads[0]].place) for r in (old, new))
    return suggest_wider_scope(one, other)


def _suggest_completion_wait(m: Machine, old: Record, new: Record, low: int) -> str:
    """Return the wait for an asynchronous operation that a later access needs."""
    op = old.event.op
    second = line_of(new.event.op)
    mechanism, what = _completion_mechanism(m, old, new)
    if new.proxy == "TMAP":
        releases = [e.op for e in m.trace[old.position :] if _is_tensormap_fence(e.op, "release")]
        if old.waits or not releases:
            return _suggest_tensormap_fences(m, old, new)
        return f"{mechanism} before line {line_of(releases[0])}, which releases the map to its readers."
    relaxed = _suggest_acquire(m, old, new) if what == "mbar" else ""
    if relaxed:
        return relaxed
    if old.agent == new.agent and (m.agents[old.agent].is_single_thread or isinstance(op, ops.Wgmma)):
        mechanism, later = wait_of_group(m, old, new.position) if what == "group" else (mechanism, 0)
        told = " and hand over" if mechanism.startswith("Let") else ""
        return f"{mechanism}{told} before line {second}. {pending_groups_note(later)}".strip()
    if not old.write and m.agents[new.agent].time[old.agent] < old.step:
        waited = find_group_wait(m, m.agents[old.agent], old) if what == "group" else None
        if waited is not None and _count_earlier_executions(m, new) > _count_earlier_executions(m, old):
            return (
                f"After the wait at line {line_of(waited)} in {m.name(m.agents[old.agent])}, hand over to line "
                f"{second}: a barrier, or a release that is acquired. Or, if line {second} belongs before it: "
                f"fence.proxy.async, then hand over to line {line_of(op)}."
            )
        return (
            f"Hand line {second} over before line {line_of(op)} is issued: fence.proxy.async, then a barrier or a "
            f"release that is acquired. Or, if it belongs behind it: {mechanism[0].lower()}{mechanism[1:]} in "
            f"{m.name(m.agents[old.agent])}, then hand over."
        )
    issuer, other = m.agents[old.agent], m.agents[new.agent]
    if what == "group":
        met = classify_stage_read(m, old, new, low)
        if met is ReadPhase.NEXT:
            return order_before_issue(second, line_of(op))
        instead = alternative_order_before_issue(second, line_of(op)) if met is ReadPhase.EITHER else ""
        over = _last_release_known(m, issuer, other, old.position, new.position)
        waited = None
        if over is not None:
            number = _count_earlier_executions(m, new) + 1
            waited = find_wait_before_own_access(m, issuer, old, new.event.op, number, over)
        if waited is None and over is not None and not has_waited(m, issuer, old, over):
            mechanism, later = wait_of_group(m, old, over)
            line = line_of(m.trace[over].op)
            also = " ".join(
                filter(None, (pending_groups_note(later), explain_late_wait(m, issuer, old, m.trace[over]), instead))
            )
            return f"{mechanism} before line {line}, which hands the bytes over. {also}".strip()
        waited = waited or find_group_wait(m, issuer, old)
        how = f"hand over to line {second}: a barrier, or a release that is acquired. {instead}".strip()
        if waited is not None:
            return f"After the wait at line {line_of(waited)} in {m.name(issuer)}, {how}"
        return f"{mechanism} in {m.name(issuer)}, then {how}"
    if mechanism.startswith("Let"):
        return f"{mechanism} and hand over before line {second}."
    return f"{mechanism} before line {second}, or take over from a thread that did."


def _suggest_acquire(m: Machine, old: Record, new: Record) -> str:
    """Return the fence that turns the thread's own relaxed wait for an operation into an acquire."""
    agent = m.agents[new.agent]
    if not any(agent.time[bar] > signal.clock_bound for bar, signal in _first_signals(m, old).items()):
        return ""
    waits = (ops.performed_operation(e.op) for e in reversed(m.trace) if e.agent == new.agent and e.signal < 0)
    wait = next((op for op in waits if isinstance(op, ops.MbarrierWait)), None)
    if wait is None or wait.sem != "relaxed":
        return ""
    return f"Execute fence.acquire.{wait.scope} after line {line_of(wait)}, whose wait is relaxed and acquires nothing."


def _completion_mechanism(m: Machine, old: Record, new: Record) -> tuple[str, str]:
    """Return how to wait for an operation, and whether by a group, which belongs to the issuing thread."""
    op = old.event.op
    if old.mbarrier_clocks:
        names = []
        signals = _first_signals(m, old)
        for bar in m.mbarriers.values():
            if bar.clock_index in old.mbarrier_clocks:
                signal, now = signals.get(bar.clock_index), bar.state.phase if bar.state is not None else 0
                phase = now if signal is None else signal.phase
                names.append(f"phase {phase} (parity {phase % 2}) of {m.label(bar.address)}")
        far = any(
            not _same_cta(m, bar.address, new) for bar in m.mbarriers.values() if bar.clock_index in old.mbarrier_clocks
        )
        who = "Let a thread of its CTA wait" if far else "Wait"  # only the owner's threads may (9.7.13.15.16)
        return f"{who} for {' and '.join(names)}, which the operation at line {line_of(op)} completes,", "mbar"
    text = wait_for_completion(op, write=is_modification(old), later=0 if is_committed(m, old) else None)
    if text is not None:
        return text, "group"
    if getattr(op, "mbar", None) is not None:
        return f"Wait for the phase of the mbarrier that line {line_of(op)} signals", "mbar"
    return f"Wait for the completion of line {line_of(op)}", "mbar"


def _same_cta(m: Machine, address: int, record: Record) -> bool:
    """Whether a shared object is in the CTA whose thread makes an access."""
    instance = m.program.memory.find(address)
    return instance is None or instance.cta == m.program.threads[m.agents[record.agent].threads[0]].place.cta


def _first_signals(m: Machine, old: Record) -> dict[int, TraceEntry]:
    """Return the first signal of an operation to each mbarrier, by the clock component of the object."""
    out: dict[int, TraceEntry] = {}
    for entry in m.trace[old.position :]:
        if entry.signal >= 0 and entry.agent == old.agent and entry.op is old.event.op:
            out.setdefault(entry.signal, entry)
    return out


def _last_release_known(m: Machine, issuer: Agent, other: Agent, since: int, until: int) -> int | None:
    """Return the last release of ``issuer`` in a part of the trace that ``other`` knows of."""
    for k in range(min(until, len(m.trace)) - 1, since, -1):
        entry = m.trace[k]
        if entry.agent == issuer.index and is_release(entry) and other.time[entry.agent] >= entry.step:
            return k
    return None


def is_release(entry: TraceEntry) -> bool:
    op = entry.op
    writes = isinstance(op, ops.ScalarWrite) and op.sem != "weak"
    return entry.signal < 0 and (writes or op.facets.synchronises or isinstance(op, ops.MbarrierArrive))


def _find_elected_lane(m: Machine, owner: Agent, issuer: Agent, old: Record) -> tuple[Agent, TraceEntry] | None:
    """Return another lane of the owner's warp that releases to the issuer after the access."""
    place = m.warp_of(owner)
    for k in m.setup.warp_mates[owner.index]:
        lane = m.agents[k]
        if lane is owner or lane is issuer or m.warp_of(lane) != place:
            continue
        known = entry_at_step(m, lane, issuer.time[k])
        if known is None or not isinstance(known.op, ops.MbarrierArrive) or line_of(known.op) < line_of(old.event.op):
            continue
        alone = known.op.guard is not None or not any(op.span == known.op.span for op in owner.code)
        if alone and _count_executions(m, lane, known.op, known.step) == _count_executions(
            m, owner, old.event.op, old.step
        ):
            return lane, known
    return None


def _count_earlier_executions(m: Machine, record: Record) -> int:
    """Return how often the agent of an access executed its statement before."""
    return _count_executions(m, m.agents[record.agent], record.event.op, record.step)


def _count_executions(m: Machine, agent: Agent, op: Op, step: int) -> int:
    """Return how often an agent has executed a statement before a step."""
    return sum(1 for e in m.trace if e.agent == agent.index and e.signal < 0 and e.step < step and e.op.span == op.span)


# --- mbarrier objects -------------------------------------------------------------------------------------------


def suggest_publication(m: Machine, agent: Agent, bar: Mbarrier, op: Op) -> str:
    """Return what orders the initialisation of an mbarrier before an operation of another thread."""
    began = bar.initialisation
    if began is None:
        return ""
    owner = m.agents[began.agent]
    line = line_of(began.event.op)
    if owner.placement[2] != agent.placement[2]:
        barrier = "barrier.cluster.arrive and barrier.cluster.wait"
        fences = [(a, fence) for a in m.agents for fence in a.code if _of_inits(fence)]
        there = next((fence for a, fence in fences if a is owner and line_of(fence) > line), None)
        if there is not None:
            return f"Let {barrier} stand in both CTAs between line {line_of(there)} and line {line_of(op)}."
        fence = f"Execute fence.mbarrier_init.release.cluster after line {line}, in the thread that initialises,"
        others = [f"The one at line {line_of(f)} is for the inits of its own thread, {m.name(a)}." for a, f in fences]
        return " ".join([f"{fence} and {barrier} between that and line {line_of(op)}.", *others[:1]])
    return f"Put a barrier such as bar.sync 0 between the mbarrier.init at line {line} and line {line_of(op)}."


def _of_inits(op: Op) -> bool:
    return isinstance(op, ops.Fence) and op.restrict == "mbarrier_init"


def suggest_single_init(bar: Mbarrier, op: Op) -> str:
    """The fix for an init of an object that exists."""
    if bar.initialisation is None or bar.initialisation.event.op.span == op.span:
        return f"Let one thread execute line {line_of(op)}, once, or mbarrier.inval before it is executed again."
    first = line_of(bar.initialisation.event.op)
    return (
        f"Execute mbarrier.inval before line {line_of(op)}, when nothing on the object of line {first} is outstanding."
    )


# --- what the trace tells ---------------------------------------------------------------------------------------


def find_release(m: Machine, agent: Agent, position: int, step: int | None = None) -> Op | None:
    """Return the first release of the agent after a position of the trace (and before a step)."""
    for entry in m.trace[position + 1 :]:
        if entry.agent == agent.index and (step is None or entry.step < step) and is_release(entry):
            return entry.op
    return None
