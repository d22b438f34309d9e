"""Witnesses and findings of a candidate: traces, flagged races, deadlocks, undefined behaviour."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.answers.left_open import is_question
from mcheck.answers.missing_arrivals import find_lack, phases_of
from mcheck.answers.result import NOT_UNDEFINED
from mcheck.answers.root_waits import Steps, StuckThread, Target, find_causes
from mcheck.answers.step_text import deadlock_code, step_of, text_of
from mcheck.base.phrase import Actor, Lack, Phrase, Thing, say
from mcheck.base.records import dataclass, replace
from mcheck.cat.tags import Tag, proxy_of
from mcheck.events.choices.candidate import Candidate, CircularValue, Undetermined, Valuation
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event, Path
from mcheck.events.structure import Node, Structure
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding, format_range
from mcheck.findings.fix import Fix, Fixes
from mcheck.findings.trace import Reads, Signals, StepEffect, StepPart, Trace, WaitResult, Writer, Writes
from mcheck.ir.memory import MBARRIER_BYTES
from mcheck.ir.ops import Await, Op
from mcheck.ir.program import Program, Thread
from mcheck.semantics.terms import Uid, Unknown


@dataclass(frozen=True, slots=True)
class FlagReport:
    """A pair of events that the flag ``name`` of the model reports in a candidate."""

    name: str
    pair: tuple[int, int]
    candidate: Candidate


def describe_execution(prepared: Prepared, candidate: Candidate) -> Trace:
    """The trace of a candidate: a step for each event that reads, writes, waits or orders.

    The effects of an asynchronous operation follow its issue.
    """
    s = prepared.s
    valuation = prepared.valuation(candidate)
    steps = []
    for node in s.nodes:
        if node.source is None or node.source.tags & {Tag.BWAIT, Tag.MET, Tag.START, Tag.EXIT, Tag.BLOCKED}:
            continue
        later = node.source.issue is not None
        effect = step_effect(s, valuation, node)
        if effect is not None or not later:
            part = StepPart.COPIES if later else StepPart.EXECUTES
            steps.append(step_of(s.thread(node).name, node.source.op, part=part, effect=effect))
    return tuple(steps)


def step_effect(s: Structure, valuation: Valuation, node: Node) -> StepEffect | None:
    """The effect of an event, if there is more to say than its instruction."""
    if node.has(Tag.R) and node.size:
        w = valuation.source(node.index)
        value = _known(lambda: valuation.write(w))
        name, unit = object_at(s, node), element_size(s, node)
        return Reads(object=name, value=value, writer=_writer(s, w), size=node.size, unit=unit)
    if node.has(Tag.W) and node.size:
        value = _known(lambda: valuation.write(node.index))
        return Writes(object=object_at(s, node), value=value, size=node.size, unit=element_size(s, node))
    if node.has(Tag.ASYNCSIGNAL):
        return Signals()
    if node.has(Tag.WAIT) and node.source is not None:
        uid = node.source.uid
        result = _known(lambda: valuation.of(uid))
        return WaitResult(None if result is None else bool(result))
    return None


def _known(compute: Callable[[], int]) -> int | None:
    try:
        return compute()
    except (Unknown, Undetermined, CircularValue):
        return None


def _writer(s: Structure, w: int) -> Writer | None:
    node = s.nodes[w]
    if node.source is None:
        return None
    return Writer(
        thread=s.thread(node).name,
        instruction=text_of(node.source.op),
        asynchronous=node.source.issue is not None,
    )


def object_at(s: Structure, node: Node) -> str:
    """The name of the object that a memory event accesses, with the byte range if it is a part."""
    for instance in s.program.memory.instances:
        start = node.address - instance.physical
        if instance.base == instance.physical and 0 <= start < instance.object.size:
            if start == 0 and node.size == instance.object.size:
                return instance.label
            return format_range(instance.label, start, start + node.size)
    return hex(node.address)


def element_size(s: Structure, node: Node) -> int:
    """The size of an element of the object that a memory event accesses, in bytes."""
    for instance in s.program.memory.instances:
        if instance.base == instance.physical and 0 <= node.address - instance.physical < instance.object.size:
            return instance.object.elem_size
    return 1


def access_of(s: Structure, node: Node) -> Access:
    """A memory event as an access of a finding."""
    event = node.source
    assert event is not None
    label, start = "", 0
    for instance in s.program.memory.instances:
        if instance.base == instance.physical and 0 <= event.address - instance.base < instance.object.size:
            label, start = instance.label, event.address - instance.base
    return Access(
        thread=s.program.threads[node.thread].name,
        instruction=text_of(event.op),
        span=event.op.span,
        object=label,
        bytes=(start, start + event.size),
        proxy=proxy_of(event.tags),
        access="write" if Tag.W in event.tags else "read",
        asynchronous=event.issue is not None and event.order is None,
        strong=Tag.WEAK not in event.tags,
    )


def may_be_undefined(s: Structure, name: str, pair: tuple[int, int]) -> bool:
    """Whether a flagged pair may mean that the execution is undefined.

    A race between ordinary accesses of one size does not (8.7.2), one with an asynchronous operation does.
    """
    events = [s.nodes[k].source for k in pair]
    if is_question(name):
        return False
    return name not in NOT_UNDEFINED or any(e is not None and e.issue is not None for e in events)


def _finding(
    code: str, profile: str, said: Phrase, accesses: tuple[Access, ...], trace: Trace, section: str = ""
) -> Finding:
    entry = catalogue.get(code)
    return Finding(
        code=code,
        kind=entry.kind,
        severity=entry.severity(profile),
        said=said,
        accesses=accesses,
        fixes=(entry.fix_for(said),),
        section=entry.section_for(section),
        trace=trace,
    )


def flag_findings(prepared: Prepared, flag: FlagReport, profile: str) -> list[Finding]:
    """The finding for a flagged pair; none for a flag that is not in the catalogue, which is the model's own."""
    from mcheck.base.errors import InputError

    try:
        entry = catalogue.get(flag.name)
    except InputError:
        return []
    nodes = [prepared.s.nodes[k] for k in sorted(set(flag.pair))]
    accesses = tuple(access_of(prepared.s, n) for n in nodes if n.source is not None)
    if not nodes[-1].size:
        said: Phrase = (f"{entry.name.replace('-', ' ')}: {accesses[-1].thread} at {accesses[-1].instruction}",)
        return [_finding(entry.code, profile, said, accesses, describe_execution(prepared, flag.candidate))]
    what = " and ".join(f"the {a.proxy} {a.action} by {a.thread} ({a.instruction})" for a in accesses)
    where = object_at(prepared.s, nodes[-1])
    fixes, lack = _advise(prepared, flag, entry.code) if len(nodes) == len(accesses) == 2 else ((), ())
    end = (": ", Lack(lack)) if lack else ()
    said = say("{} on {}: {}{}", entry.name.replace("-", " "), where, what, end)
    found = _finding(entry.code, profile, said, accesses, describe_execution(prepared, flag.candidate))
    return [replace(found, fixes=fixes or found.fixes)]


def _advise(prepared: Prepared, flag: FlagReport, code: str) -> tuple[Fixes, Phrase]:
    """The fixes for a flagged pair, and what it lacks; empty if no order of the steps shows the candidate."""
    from mcheck.answers.advice.races import advise_on_race  # these start late: most programs have no race
    from mcheck.answers.candidate_graph import graph_of

    graph = graph_of(prepared, flag.candidate, flag.pair)
    advice = advise_on_race(graph, code) if graph is not None else None
    return (advice.fixes, advice.lack) if advice is not None else ((), ())


def misstep_finding(program: Program, path: Path, profile: str) -> Finding:
    """The finding for undefined behaviour on the path of one thread."""
    assert path.misstep is not None
    op = path.misstep.op
    who = program.threads[path.thread].name
    access = Access(thread=who, instruction=text_of(op), span=op.span)
    said = say("{}{}", Actor(who), path.misstep.message)
    return _finding(path.misstep.code, profile, said, (access,), (), op.section)


def misuse_finding(prepared: Prepared, misuse: tuple[str, str | Phrase, Uid], profile: str) -> Finding:
    """The finding for a misuse of an mbarrier that some order of its operations leads to."""
    code, message, uid = misuse
    event = prepared.s.events[uid]
    who = prepared.s.program.threads[uid[0]].name
    access = Access(thread=who, instruction=text_of(event.op), span=event.op.span)
    return _finding(code, profile, say("{}{}", Actor(who), message), (access,), (), event.op.section)


WAITS = "waits forever"
WAITING_TAGS = frozenset((Tag.R, Tag.WAIT))
"""Tags of the events by which a loop waits."""


def waiting_nodes(s: Structure, paths: tuple[Path, ...]) -> tuple[int, ...]:
    """The event at which each stuck thread waits forever."""
    out = []
    for path in paths:
        if path.end == "stuck":
            events = [e for u in path.stuck[-1:] for e in s.nodes_of[u]]
            blocked = [n.index for n in s.nodes if n.thread == path.thread and n.has(Tag.BLOCKED)]
            out += events or blocked[-1:]
    return tuple(out)


def deadlock_finding(prepared: Prepared, candidate: Candidate, paths: tuple[Path, ...], profile: str) -> Finding:
    """The finding for a deadlock: the threads that wait forever, and where."""
    s = prepared.s
    waits: list[tuple[Thread, Op, StuckThread]] = []
    lacks: list[Fix] = []
    for path in paths:
        if path.end != "stuck":
            continue
        tests = [s.events[u] for u in path.stuck if s.events[u].tags & WAITING_TAGS]
        tests = [e for e in tests if e.mbarrier is not None] or tests  # data that a round reads besides end no loop
        last = tests[-1].op if tests else s.events[path.stuck[-1]].op if path.stuck else None
        op = path.at if isinstance(path.at, Await) or last is None else last
        if op is None:
            continue
        thread = s.program.threads[path.thread]
        stuck = StuckThread.create([thread], Steps.create(thread), path.pc, op, deadlock_code(op), map(_target, tests))
        waits.append((thread, op, stuck))
        if tests and tests[-1].mbarrier is not None:
            lack = find_lack(s, phases_of(prepared, candidate), tests[-1].mbarrier.address)
            lacks += [lack.describe(_bar_at(s, tests[-1].mbarrier.address))] if lack else []
    roots = find_causes([stuck for *_, stuck in waits]).roots
    code = max((waits[k][2].code for k in roots), default="DEAD001")  # whatever the order of the threads
    causes_first = sorted(range(len(waits)), key=lambda k: k not in roots)
    waiting = [
        Access(thread=thread.name, instruction=text_of(op), span=op.span)
        for thread, op, _ in map(waits.__getitem__, causes_first)
    ]
    said = ("wait forever: " + "; ".join(f"{a.thread} at {a.instruction}" for a in waiting),)
    found = _finding(code, profile, said, tuple(waiting), describe_execution(prepared, candidate))
    return replace(found, fixes=tuple(dict.fromkeys([*lacks, *found.fixes])))


def _target(test: Event) -> Target:
    return ("word", test.address) if test.mbarrier is None else ("mbarrier", test.mbarrier.address)


def _bar_at(s: Structure, address: int) -> Thing:
    instance = s.program.memory.find(address)
    if instance is None:
        return Thing(hex(address))
    offset = address - instance.base
    alone = not offset and instance.object.size <= MBARRIER_BYTES
    return instance.thing("" if alone else f"[bytes {offset}..{offset + MBARRIER_BYTES}]")
