"""The schedules to run after one: its choices the other way, and its dependent steps in the other order."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.mbarrier_waits import CURRENT_PHASE
from mcheck.engines.protocol.state.trace import PlannedStep, Prefix, Reversal, TraceEntry
from mcheck.ir import ops


def find_next_prefixes(machine: Machine, one_per_statements: bool) -> list[Prefix]:
    """The prefixes to run next: other choices, and reversals; with ``one_per_statements`` one reversal for each pair of
    statements.
    """
    trace = machine.trace
    held = _find_blocked_by_guess(machine)
    if not machine.reversals and not held and not any(e.choices for e in trace):
        return []
    steps: list[PlannedStep] = [(e.actor, tuple(c for c, _ in e.choices)) for e in trace]
    all_steps: list[PlannedStep] = []
    begun: list[int] = []
    """For each entry, the number of steps before it."""
    for entry, step in zip(trace, steps, strict=True):
        all_steps += entry.failed_steps
        begun.append(len(all_steps))
        all_steps.append(step)
    out: list[Prefix] = []
    for position, entry in held:
        before = begun[position] - len(trace[position].failed_steps) if position < len(trace) else len(all_steps)
        out.append((*all_steps[:before], *entry.failed_steps, (entry.actor, (1,))))
    waiting: list[Prefix] = []
    """Those in which a wait for an mbarrier goes on waiting: they come last, and so are run first. Perhaps it waits
    forever.
    """
    for k, entry in enumerate(trace):
        for j, (taken, of) in enumerate(entry.choices):
            for other in range(taken + 1, of) if isinstance(of, int) else of:
                ways = (*(c for c, _ in entry.choices[:j]), other)
                into = waiting if other == CURRENT_PHASE and _awaits_phase(entry.op) else out
                into.append((*all_steps[: begun[k]], (entry.actor, ways)))
    place = {id(entry): k for k, entry in enumerate(trace)}
    for earlier, ends, later in _one_per_pair(machine) if one_per_statements else machine.reversals:
        machine.setup.check_deadline()
        first = trace[earlier]
        between = range(earlier + 1, min(later, len(trace)))
        chosen = {k for e in ends if (k := place.get(id(e), -1)) in between}
        free = {k for k in between if not _is_before(first, trace[k])}
        needed = chosen | {k for k in free if any(e is not first and _is_before(trace[k], e) for e in ends)}
        # Other steps that need not follow the first one may precede it: which of them do is part of the order.
        for which in (needed,) if one_per_statements or needed == chosen | free else (needed, chosen | free):
            tail = [steps[k] for k in sorted(which)]
            if not chosen:
                tail.append((ends[-1].actor, ()))
            if first.guess is not None:  # the guess is why the two were not ordered
                tail.append((first.actor, (first.guess,)))
            elif any(e is first for e in ends):
                tail.append(steps[earlier])
            elif isinstance(ops.performed_operation(ends[-1].op), ops.MbarrierWait):
                # A wait has no effect on other steps, so they are replayed unchanged.
                tail += [(trace[k].actor, ()) for k in (earlier, *between) if k not in which]
            out.append((*all_steps[: begun[earlier]], *tail))
    return out + waiting


def _awaits_phase(op: ops.Op) -> bool:
    """Whether an operation waits until a phase of an mbarrier is over."""
    return isinstance(op, ops.Await) and isinstance(ops.performed_operation(op), ops.MbarrierWait)


def _find_blocked_by_guess(machine: Machine) -> list[tuple[int, TraceEntry]]:
    """The steps at which agents wait forever because an unknown guard was assumed to hold; they might have continued. A
    step that is executed in the end has this among its choices.
    """
    found = []
    for agent in machine.agents:
        held = machine.blocked_steps.get(agent.index) if agent.status == "blocked" else None
        if held is None or held[1].op is not agent.code[agent.pc]:
            continue
        if held[1].guess is not None and held[1].choices[0] == (0, 2):
            found.append(held)
    return found


def _one_per_pair(machine: Machine) -> list[Reversal]:
    """The first reversal of each pair of statements."""
    found: dict[object, Reversal] = {}
    for reversal in machine.reversals:
        first, ends = machine.trace[reversal[0]], reversal[1]
        found.setdefault((first.op.span, ends[-1].op.span, any(e is first for e in ends)), reversal)
    return list(found.values())


def _is_before(a: TraceEntry, b: TraceEntry) -> bool:
    """Whether step ``a`` precedes step ``b`` in time; an arrival does not follow what it waits for at its barrier."""
    time = b.start_time or b.time
    if a.signal >= 0:
        return time[a.signal] > a.clock_bound
    if a.agent == b.agent:
        return a.step < b.step if b.signal < 0 else a.step <= b.step
    return time[a.agent] >= a.step
