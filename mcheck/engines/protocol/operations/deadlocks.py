"""Deadlock messages: which threads wait where for what, its state, and which threads could help and why they do not."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.advice.graph import line_of, site_of
from mcheck.answers.root_waits import StuckThread, Target, find_causes, find_signal
from mcheck.answers.step_text import deadlock_code, text_of
from mcheck.base.errors import Span
from mcheck.base.phrase import Phrase, Site, Thing, capital, join, say
from mcheck.base.records import dataclass
from mcheck.effects.generic_memory import name_of
from mcheck.engines.protocol.diagnosis.iteration import iteration_of
from mcheck.engines.protocol.diagnosis.transaction_bytes import describe_bytes, suggest_byte_count
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.overwritten_values import describe_overwritten, find_overwritten, find_writers
from mcheck.engines.protocol.operations.barrier_counts import suggest_barrier_count
from mcheck.engines.protocol.operations.thread_names import format_threads
from mcheck.engines.protocol.operations.wgmma import GROUPS
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.problems import Problem
from mcheck.engines.protocol.state.sync_objects import BarrierState, Mbarrier, Word
from mcheck.findings import catalogue
from mcheck.findings.finding import Access
from mcheck.findings.fix import Fix, Helper, Note, Phase, ToCome, advise
from mcheck.findings.waits import ForThreads, Goal, OfBarrier, OfMbarrier, OfWord, Other, Wait
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op

SHOWN = 6
"""Maximum waits that a message describes."""


@dataclass(frozen=True, slots=True)
class StuckGroup:
    """Agents that wait at one statement for the same thing."""

    agents: tuple[Agent, ...]
    op: Op
    code: str
    goal: Goal


def describe_deadlock(m: Machine, stuck: list[Agent]) -> Problem:
    """Create the problem for agents that wait forever."""
    found = list(_group_stuck(m, stuck))
    roots, needed = _find_causes(m, found)
    order = sorted(range(len(found)), key=lambda k: k not in roots)  # those first that the others wait for
    waits = [_describe_wait(m, found[k]) for k in order[:SHOWN]]
    if len(order) > SHOWN:
        waits.append((f"and {len(order) - SHOWN} more",))
    told = sorted((_told(m, found[k]) for k in order if k in roots), key=lambda cause: cause.rank)
    causes = [cause.group for cause in told]
    idle = {k for k in order if k not in roots and k not in needed and _waits_at_barrier(found[k])}
    groups = causes + [found[k] for k in order if k not in roots and k not in idle]
    cut = told[0].cut
    code = max(cause.group.code for cause in told if cause.cut == cut)  # whatever the order of the roles
    fixes = [cause.fix for cause in _select_told(told)]
    helpers = [_explain_helpers(m, g, stuck) for g in groups]
    cycle = [note for note in helpers if isinstance(note, ToCome) or not cut]  # who is not followed may signal
    return Problem(
        code,
        say("wait forever: {}", join(waits, "; ", "; ")),
        tuple(_describe_access(m, g.agents[0], g.op) for g in (*groups, *(found[k] for k in order if k in idle))),
        tuple(dict.fromkeys((*(g.agents[0].index for g in groups[:SHOWN]), *find_writers(m, stuck)))),
        len(m.trace),
        max(len(m.trace) - 40, 0),
        tuple(dict.fromkeys(fixes)),
        waits=tuple(Wait(format_threads(m, g.agents), site_of(g.op), g.goal) for g in groups[:SHOWN]),
        cycle=tuple(dict.fromkeys(note for note in cycle if note is not None)),
    )


@dataclass(frozen=True, slots=True)
class _Cause:
    """A group with the fix for it. ``missed``: it has missed a phase, for which the others then wait; ``begun``: part
    of what it waits for has come; ``plain``: its fix says no more than that nothing came; ``cut``: it waits at a
    barrier behind which its threads were not followed, so that nobody knows what they would signal for the others.
    """

    group: StuckGroup
    fix: Fix
    missed: bool
    begun: bool
    plain: bool
    cut: bool

    @property
    def near(self) -> bool:
        """Whether it is nearer to what is wrong than others that wait."""
        return self.missed or self.begun

    @property
    def rank(self) -> tuple[bool, ...]:
        """What comes first: who waits for other threads to come tells less than what those wait for."""
        return not self.cut, _waits_at_barrier(self.group), not self.missed, not self.begun, self.plain


def _select_told(told: list[_Cause]) -> list[_Cause]:
    """The causes whose fixes are told: those of barriers where all that is known ends, else those nearest to what is
    wrong; what says only that nothing came, if there is no other.
    """
    if any(cause.cut for cause in told):
        return [cause for cause in told if cause.cut]
    near = any(cause.near for cause in told)
    kept = [cause for cause in told if not near or cause.near or _waits_at_barrier(cause.group)]
    return [cause for cause in kept if not cause.plain] or kept


def _told(m: Machine, group: StuckGroup) -> _Cause:
    fix, missed = _suggest_fix(m, group)
    bar = group.agents[0].blocked_on
    plain = isinstance(bar, Mbarrier) and fix == advise("{}", _nothing_came(m, bar))
    return _Cause(group, fix, missed, _has_begun(group), plain, all(map(is_cut, group.agents)))


def is_cut(agent: Agent) -> bool:
    """Whether an agent waits at a barrier with a count, and was not followed on from there."""
    where = agent.blocked_on
    behind = agent.code[agent.pc + 1 : agent.pc + 2]
    counted = isinstance(where, BarrierState) and where.count is not None
    return counted and any(isinstance(op, ops.UnknownContinuation) for op in behind)


def _find_causes(m: Machine, groups: list[StuckGroup]) -> tuple[frozenset[int], frozenset[int]]:
    """The groups that are the cause of the deadlock, and those that would let others go on."""
    of = [k for k, group in enumerate(groups) for _ in group.agents]
    causes = find_causes([_describe_stuck(m, agent, group) for group in groups for agent in group.agents])
    return frozenset(of[k] for k in causes.roots), frozenset(of[k] for k in causes.needed)


def _describe_stuck(m: Machine, agent: Agent, group: StuckGroup) -> StuckThread:
    threads = [m.program.threads[t] for t in agent.threads]
    steps = m.setup.steps_of(agent.index)
    return StuckThread.create(threads, steps, agent.pc, group.op, group.code, _find_tests(agent.blocked_on))


def _find_tests(where: object) -> list[Target]:
    """The mbarriers that a stuck agent tests; if there are none, the words."""
    match where:
        case Mbarrier():
            return [("mbarrier", where.address)]
        case Word():
            return [("word", where.address)]
        case list():
            polled: list[Target] = [(kind, address) for kind, address, *_ in where]
            return [target for target in polled if target[0] == "mbarrier"] or polled
    return []


def _waits_at_barrier(group: StuckGroup) -> bool:
    """Whether a group waits for other threads to come, which tells less than what those wait for."""
    return isinstance(group.agents[0].blocked_on, BarrierState)


def _find_signallers(where: Mbarrier | Word, stuck: list[Agent]) -> Iterator[tuple[Agent, Op]]:
    """The agents that have still to signal an mbarrier or write a word, and the operation that does; of those that wait
    for it themselves, nothing is to be hoped for.
    """
    for agent in stuck:
        op = find_signal(agent.code[agent.pc + 1 :], where.address, mbarrier=isinstance(where, Mbarrier))
        if op is not None and agent.blocked_on is not where:
            yield agent, op


def _find_own_signals(where: Mbarrier, stuck: list[Agent]) -> Iterator[tuple[Op, Op]]:
    """The operations by which agents that wait for an mbarrier would signal it themselves, with their waits."""
    for agent in stuck:
        op = find_signal(agent.code[agent.pc + 1 :], where.address, mbarrier=True)
        if op is not None and agent.blocked_on is where:
            yield op, agent.code[agent.pc]


def _describe_wait(m: Machine, group: StuckGroup) -> Phrase:
    """Who waits where for what."""
    who, where = format_threads(m, group.agents), say("{}{}", site_of(group.op), _describe_round(m, group))
    return say("{} at {} ({}) {}", who, where, text_of(group.op), group.goal.said)


def _describe_round(m: Machine, group: StuckGroup) -> str:
    """The loop iteration in which all agents of a group wait, if it is the same."""
    turns = {iteration_of(m, a, a.pc) for a in group.agents}
    return f" in round {turns.pop()}" if len(turns) == 1 and "" not in turns else ""


def _group_stuck(m: Machine, stuck: list[Agent]) -> Iterator[StuckGroup]:
    """Group stuck agents by statement and by what they wait for."""
    found: dict[tuple[Span | None, str, Goal], list[Agent]] = {}
    at: dict[tuple[Span | None, str, Goal], Op] = {}
    for agent in stuck:
        op = agent.code[min(agent.pc, len(agent.code) - 1)]
        code, goal = _find_goal(m, agent, op)
        key = (op.span, code, goal)
        found.setdefault(key, []).append(agent)
        at.setdefault(key, op)
    for key, agents in found.items():
        yield StuckGroup(tuple(agents), at[key], key[1], key[2])


def _describe_access(m: Machine, agent: Agent, op: Op) -> Access:
    """The waiting operation as an access of the finding."""
    where = agent.blocked_on
    label, bytes_ = "", (0, 0)
    if isinstance(where, Mbarrier | Word):
        instance = m.program.memory.find(where.address)
        size = 8 if isinstance(where, Mbarrier) else where.size
        if instance is not None:
            label, bytes_ = instance.label, (where.address - instance.base, where.address - instance.base + size)
    return Access(thread=m.name(agent), instruction=text_of(op), span=op.span, object=label, bytes=bytes_)


# --- goals --------------------------------------------------------------------------------------------------------


def _find_goal(m: Machine, agent: Agent, op: Op) -> tuple[str, Goal]:
    """The code of the finding, and what an agent waits for."""
    where = agent.blocked_on
    if isinstance(where, Mbarrier) and where.state is not None:
        return "DEAD003", _find_mbarrier_goal(m, agent, op, where)
    if isinstance(where, BarrierState):
        lacks = [m.agents[k] for k in sorted(where.members - set(where.arrived)) if m.agents[k].status != "done"]
        missing = format_threads(m, lacks) or "nobody"
        if where.key[0] == "cluster":
            return "DEAD005", ForThreads("waits at the cluster barrier", missing)
        if where.count is not None:
            return "DEAD002", OfBarrier(str(where.key[-1]), 32 * len(where.warps), where.count)
        if where.key[-1] == "aligned":
            return deadlock_code(op), ForThreads("needs all lanes of the warp together, and waits", missing)
        what = name_of(op) if isinstance(op, ops.WarpSync | ops.Collective) else f"barrier {where.key[-1]}"
        return deadlock_code(op), ForThreads(f"waits at {what}", missing)
    if where == GROUPS:
        return deadlock_code(op), Other("waits for other warps of its warpgroup to commit as many wgmma groups")
    if isinstance(where, Word):
        code = "DEAD004" if isinstance(op, ops.Await) else "DEAD001"
        value = where.writes[-1].value
        taken = find_overwritten(m, agent, where) if value is not None else None
        why = describe_overwritten(m, taken) if taken is not None else ()
        return code, OfWord(m.thing_at(where.address), value, why)
    polled = [kind for kind, *_ in where] if isinstance(where, list) else []
    code = "DEAD003" if "mbarrier" in polled else "DEAD001"
    return code, Other("repeats a loop forever", "what it reads no longer changes")


def _find_awaited_phase(m: Machine, agent: Agent, op: Op, bar: Mbarrier) -> tuple[int | None, int | None]:
    """The awaited parity, and the phase that the waiter means: the one after the last that it saw."""
    inner = ops.performed_operation(op)
    if not isinstance(inner, ops.MbarrierWait) or inner.parity is None:
        return None, None
    parity = m.uniform_value(agent, inner.parity)
    if not isinstance(parity, int):
        return None, None
    last = bar.last_phase_seen.get(agent.index, -1)
    return parity, last + 1 if (last + 1) % 2 == parity else last + 2


def has_missed_phase(m: Machine, agent: Agent) -> bool:
    """Whether an agent waits for a phase that is over, and so is the one after it: its wait of the parity came too late
    (9.7.13.15.16). One more arrival would let it go on, and is no fix: the phase would be another one.
    """
    bar = agent.blocked_on
    if not isinstance(bar, Mbarrier) or bar.state is None:
        return False
    _, meant = _find_awaited_phase(m, agent, agent.code[min(agent.pc, len(agent.code) - 1)], bar)
    return meant is not None and meant < bar.state.phase


def _find_mbarrier_goal(m: Machine, agent: Agent, op: Op, bar: Mbarrier) -> OfMbarrier:
    """What an agent waits for at an mbarrier, and the state of the mbarrier."""
    state = bar.state
    assert state is not None
    parity, meant = _find_awaited_phase(m, agent, op, bar)
    return OfMbarrier(
        bar=m.thing_at(bar.address), parity=parity, meant=meant, now=state.phase, pending=state.pending,
        expected=state.expected, announced=bar.expected_bytes, received=bar.received_bytes,
    )  # fmt: skip


# --- fixes --------------------------------------------------------------------------------------------------------


def _suggest_fix(m: Machine, group: StuckGroup) -> tuple[Fix, bool]:
    """The fix for a group of stuck agents, and whether these have missed a phase, for which the others then wait."""
    bar = group.agents[0].blocked_on
    if isinstance(bar, BarrierState) and bar.count is not None:
        return suggest_barrier_count(m, bar), False
    if not isinstance(bar, Mbarrier) or bar.state is None:
        return catalogue.get(group.code).fix, False
    state, name, wait = bar.state, m.thing_at(bar.address), site_of(group.op)
    parity, meant = _find_awaited_phase(m, group.agents[0], group.op, bar)
    counted = _explain_counted_arrive(m, bar)
    if meant is not None and meant < state.phase:
        missed = say("{} and the next one completed before {} tested it", _phase(meant, name), wait)
        every = "let the phase depend on every waiter, each arriving after its wait"
        together = "or synchronise at a barrier before one arrives for all"
        text = "{}: {}, {}; or correct the parity"
        return advise(text, missed, every, together, phases=(Phase(name, meant),)), True
    now = _phase(state.phase, name, "phase")
    if not state.pending and state.tx:
        if state.tx > 0 and (count := suggest_byte_count(bar)) is not None:
            return count, False
        bytes_ = f"{bar.expected_bytes} bytes are expected and {bar.received_bytes} came"
        said = "The arrivals of {} have come, but {}: {}"
        return advise(said, now, bytes_, describe_bytes(bar) or _ALL_BYTES, phases=(Phase(name, state.phase),)), False
    if state.pending < state.expected:
        came = f"got {state.expected - state.pending} of {state.expected} arrivals"
        correct = say("correct the count of {}, or let the others arrive", _init_of(m, bar))
        fix = advise("{} {}: {}", capital(now), came, correct, phases=(Phase(name, state.phase),))
        return fix.noted(_explain_missing_bytes(bar), counted), False
    if state.phase == 0 and parity == 0 and bar.received_bytes:
        arrive = "arrive with expect_tx on the barrier that the copy signals"
        return advise("Bytes came to {} without an arrival: {}", name, arrive), False
    if state.phase == 0 and parity == 0:
        nothing = _nothing_came(m, bar)
        fill = _find_fill(group.agents[0])
        passed = any(_passed_before(group.agents[0], op, bar) for op in (group.op, fill) if op)
        if fill is not None and not passed:
            return _suggest_first_parity(m, bar, wait, state.expected), False
        if fill is not None:
            back = say("who uses what {} fills has to arrive on it afterwards", site_of(fill))
            return advise("{}: {}", nothing, back).noted(counted), False
        use = _find_use(group.agents[0])
        if use is not None and not any(_may_signal(agent, bar) for agent in m.agents):
            come = say("who fills what {} reads has to arrive on it", site_of(use))
            return advise("{}: {}", nothing, come).noted(counted), False
        return advise("{}", nothing).noted(counted), False
    rounds = say("let the threads that signal it run as many iterations as {} waits for, or correct the parity", wait)
    fix = advise("Nobody arrives in {}: {}", now, rounds, phases=(Phase(name, state.phase),))
    return fix.noted(counted), False


def _suggest_first_parity(m: Machine, bar: Mbarrier, wait: Site, count: int) -> Fix:
    """The two ways to begin a ring whose slots are free: to pass the first wait, or to have its phase completed."""
    times = "once" if count == 1 else f"{count} times, as its init counts,"
    begin = f"begin with parity 1 there, for the slot is free from the start, or arrive {times} before the first wait"
    return advise("Nothing arrives on {} before {} waits for its phase 0: {}", m.thing_at(bar.address), wait, begin)


_ALL_BYTES = "expect as many bytes as the copies complete"


def _nothing_came(m: Machine, bar: Mbarrier) -> Phrase:
    return say("Nothing arrived on {}", m.thing_at(bar.address))


def _init_of(m: Machine, bar: Mbarrier) -> Phrase:
    """The init of an mbarrier, with its place if it has been executed."""
    inits = (e.op for e in m.trace if isinstance(e.op, ops.MbarrierInit) and e.op.address == Const(bar.address))
    init = next(inits, None)
    return ("its init",) if init is None else say("its init at {}", site_of(init))


def _phase(number: int, name: Thing, word: str = "Phase") -> Phrase:
    return say(f"{word} {number} of {{}}", name)


def _explain_missing_bytes(bar: Mbarrier) -> Note | None:
    """The bytes that the phase would lack although all arrived: every issued copy has completed by now."""
    if bar.state is None or bar.state.tx <= 0:
        return None
    came = f"Of the {bar.expected_bytes} bytes that are expected, {bar.received_bytes} came"
    return Note((f"{came}: {_ALL_BYTES}",))


def _explain_counted_arrive(m: Machine, bar: Mbarrier) -> Note | None:
    """The effect of cp.async.mbarrier.arrive without .noinc: it raises the count that it lowers (9.7.13.15.15)."""
    for entry in m.trace:
        op = entry.op
        if isinstance(op, ops.CpAsyncArrive) and not op.noinc and op.address == Const(bar.address):
            mend = "give it .noinc, or let the thread arrive too"
            return Note(say("The arrive at {} raises the count that it lowers: {}", site_of(op), mend))
    return None


def _has_begun(group: StuckGroup) -> bool:
    """Whether part of what is awaited has come: what is missing then is nearer to the cause."""
    bar = group.agents[0].blocked_on
    if not isinstance(bar, Mbarrier) or bar.state is None:
        return False
    return bar.state.pending < bar.state.expected or bool(bar.received_bytes)


def _passed_before(agent: Agent, op: Op, bar: Mbarrier) -> bool:
    """Whether the agent has passed the same statement, or a wait for the same mbarrier, in an earlier iteration."""
    behind = agent.code[: agent.pc]
    waits = (ops.performed_operation(earlier) for earlier in behind)
    waited = (ops.mbarrier_of(wait) for wait in waits if isinstance(wait, ops.MbarrierWait))
    return any(line_of(earlier) == line_of(op) for earlier in behind) or Const(bar.address) in waited


def _find_fill(agent: Agent) -> Op | None:
    """The operation that fills a slot, if the agent's next access after its wait is a write rather than a read."""
    for op in agent.code[agent.pc + 1 :]:
        if isinstance(op, ops.BulkCopy | ops.TensorCopy | ops.CpAsync | ops.Store | ops.MbarrierTx):
            return op
        if isinstance(op, ops.Load | ops.Wgmma):
            return None
        if isinstance(op, ops.MbarrierArrive):
            return op if op.tx is not None else None
    return None


def _find_use(agent: Agent) -> Op | None:
    """The operation that reads a slot, if that is the agent's next access after its wait."""
    rest = agent.code[agent.pc + 1 :]
    kinds = ops.Load | ops.Wgmma | ops.Store | ops.BulkCopy | ops.TensorCopy | ops.CpAsync
    first = next((op for op in rest if isinstance(op, kinds)), None)
    return first if isinstance(first, ops.Load | ops.Wgmma) else None


def _may_signal(agent: Agent, bar: Mbarrier) -> bool:
    """Whether some operation of an agent's code signals an mbarrier, or one whose address a register holds."""
    if find_signal(agent.code, bar.address, mbarrier=True) is not None:
        return True
    named = (ops.mbarrier_of(op) for op in map(ops.performed_operation, agent.code) if op.facets.signals)
    return any(where is not None and not isinstance(where, Const) for where in named)


def _explain_helpers(m: Machine, group: StuckGroup, stuck: list[Agent]) -> ToCome | Note | None:
    """The agents whose code signals the mbarrier or writes the word, and why they do not get there."""
    where = group.agents[0].blocked_on
    if not isinstance(where, Mbarrier | Word):
        return None
    name = m.thing_at(where.address)
    helpers: dict[tuple[int, int, Phrase], tuple[Op, list[Agent]]] = {}
    for agent, op in _find_signallers(where, stuck):
        key = line_of(op), line_of(agent.code[agent.pc]), _describe_blocker(m, agent)
        helpers.setdefault(key, (op, []))[1].append(agent)
    if helpers:
        shown = list(helpers.items())[:SHOWN]
        found = (_helper(m, op, agents, waits) for (*_, waits), (op, agents) in shown)
        return ToCome(name, tuple(found), write=isinstance(where, Word))
    if isinstance(where, Word) or (where.state is not None and not where.state.pending):
        return None
    own = next(_find_own_signals(where, stuck), None)
    if own is not None:
        signal, wait = map(site_of, own)
        return Note(say("Only threads that wait for {} at {} have still to signal it: at {}", name, wait, signal))
    nobody = say("No thread is left to signal {}", name)
    mbarrier = isinstance(where, Mbarrier)
    over = [b for b in m.agents if b not in stuck and find_signal(b.code, where.address, mbarrier=mbarrier) is not None]
    if over:
        return Note(say("{}: {} did, and exited", nobody, format_threads(m, over)))
    return None if any(_signals_somewhere(b) for b in stuck) else Note(nobody)


def _helper(m: Machine, signal: Op, agents: list[Agent], waits: Phrase) -> Helper:
    first = agents[0]
    several = len(agents) > 1 or len(first.threads) > 1
    return Helper(format_threads(m, agents), site_of(signal), site_of(first.code[first.pc]), waits, several)


def _describe_blocker(m: Machine, agent: Agent) -> Phrase:
    """What an agent is blocked on."""
    match agent.blocked_on:
        case Mbarrier() | Word():
            return say(" on {}", m.thing_at(agent.blocked_on.address))
        case BarrierState(key=("cluster", *_)):
            return (" at the cluster barrier",)
        case BarrierState(key=("bar", *_, number)):
            return (f" at barrier {number}",)
    return ()


def _signals_somewhere(agent: Agent) -> bool:
    """Whether an agent still signals an mbarrier whose address a register holds."""
    rest = (ops.performed_operation(op) for op in agent.code[agent.pc + 1 :])
    named = (ops.mbarrier_of(op) for op in rest if op.facets.signals)
    return any(where is not None and not isinstance(where, Const) for where in named)
