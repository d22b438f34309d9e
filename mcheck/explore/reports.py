"""What the engine found, in words: witnesses of outcomes, races that a model flags, deadlocks, undefined behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcheck.explore.choices import Candidate, Circular, NotYet, Valuation
from mcheck.explore.solver import Solver
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.graph.event import Path
from mcheck.graph.structure import Node, Structure
from mcheck.graph.terms import Uid, Unknown
from mcheck.program.ops import Await, Barrier, ClusterBarrier, MbarrierWait, Op, WarpSync
from mcheck.program.program import Program

PROXIES = {"ASYNC": "async", "TMAP": "tensormap", "TEX": "texture", "SUR": "surface", "CON": "constant"}


@dataclass(frozen=True, slots=True)
class FlagReport:
    """A pair of events that the check ``name`` flags in a candidate."""

    name: str
    pair: tuple[int, int]
    candidate: Candidate


def describe(solver: Solver, candidate: Candidate) -> tuple[str, ...]:
    """An execution in words, a line per event that reads, writes, waits or orders; what an asynchronous operation
    does is
    told under its issue.
    """
    s = solver.s
    valuation = solver.valuation(candidate)
    lines = []
    for node in s.nodes:
        if node.source is None or node.source.tags & {"BWAIT", "START", "EXIT", "BLOCKED"}:
            continue
        who = s.thread(node).name
        later = node.source.issue is not None
        text = "  its copy" if later else " ".join(node.source.op.text.split())
        effect = _effect(s, valuation, node)
        if effect or not later:
            lines.append(f"{who}: {text}" + (f"  {effect}" if effect else ""))
    return tuple(lines)


def _effect(s: Structure, valuation: Valuation, node: Node) -> str:
    """What an event did, if there is anything to tell beyond its instruction."""
    where = object_at(s, node)
    if node.has("R") and node.size:
        w = valuation.source(node.index)
        return f"reads {where} = {_value(lambda: valuation.write(w))} from {_writer(s, w)}"
    if node.has("W") and node.size:
        return f"writes {where} = {_value(lambda: valuation.write(node.index))}"
    if node.has("ASYNCSIGNAL"):
        return "signals its completion"
    if node.has("WAIT") and node.source is not None:
        uid = node.source.uid
        return {"1": "-> True", "0": "-> False"}.get(_value(lambda: int(bool(valuation.of(uid)))), "")
    return ""


def _value(compute: Callable[[], int]) -> str:
    try:
        return _show(compute())
    except (Unknown, NotYet, Circular):
        return "unknown"


def _show(value: int) -> str:
    return str(value) if value < 1 << 32 else hex(value)


def _writer(s: Structure, w: int) -> str:
    node = s.nodes[w]
    if node.source is None:
        return "the initial value"
    what = " ".join(node.source.op.text.split())
    return f"the copy of {s.thread(node).name}" if node.source.issue is not None else f"{s.thread(node).name}: {what}"


def object_at(s: Structure, node: Node) -> str:
    """The object of a memory event with the byte range inside it, where it is not all of it."""
    for instance in s.program.memory.instances:
        start = node.address - instance.physical
        if instance.base == instance.physical and 0 <= start < instance.object.size:
            if start == 0 and node.size == instance.object.size:
                return instance.label
            return f"{instance.label}[bytes {start}..{start + node.size}]"
    return hex(node.address)


def access_of(s: Structure, node: Node) -> Access:
    """A memory event as a finding shows it."""
    event = node.source
    assert event is not None
    label, start = "", 0
    for instance in s.program.memory.instances:
        if instance.base == instance.physical and 0 <= event.address - instance.base < instance.object.size:
            label, start = instance.label, event.address - instance.base
    proxy = next((v for k, v in PROXIES.items() if k in event.tags), "generic")
    return Access(
        thread=s.program.threads[node.thread].name,
        instruction=" ".join(event.op.text.split()),
        span=event.op.span,
        object=label,
        bytes=(start, start + event.size),
        proxy=proxy,
        access="write" if "W" in event.tags else "read",
    )


def _finding(code: str, profile: str, message: str, accesses: tuple[Access, ...], trace: tuple[str, ...]) -> Finding:
    entry = catalogue.get(code)
    return Finding(
        code=code,
        kind=entry.kind,
        severity=entry.severity(profile),
        message=message,
        accesses=accesses,
        missing=entry.remedy,
        section=entry.section,
        trace=trace,
    )


def flag_findings(solver: Solver, flag: FlagReport, profile: str) -> list[Finding]:
    """The finding of a flagged pair; flags that are no code of the catalogue are the model's own business."""
    from mcheck.errors import InputError

    try:
        entry = catalogue.get(flag.name)
    except InputError:
        return []
    nodes = [solver.s.nodes[k] for k in sorted(set(flag.pair))]
    accesses = tuple(access_of(solver.s, n) for n in nodes if n.source is not None)
    if not nodes[-1].size:
        message = f"{entry.name.replace('-', ' ')}: {accesses[-1].thread} at {accesses[-1].instruction}"
        return [_finding(entry.code, profile, message, accesses, describe(solver, flag.candidate))]
    what = " and ".join(f"the {a.proxy} {a.access} by {a.thread} ({a.instruction})" for a in accesses)
    where = object_at(solver.s, nodes[-1])
    message = f"{entry.name.replace('-', ' ')} on {where}: {what}"
    return [_finding(entry.code, profile, message, accesses, describe(solver, flag.candidate))]


def misstep_finding(program: Program, path: Path, profile: str) -> Finding:
    """Undefined behaviour that one thread's path meets."""
    assert path.misstep is not None
    op = path.misstep.op
    who = program.threads[path.thread].name
    access = Access(thread=who, instruction=" ".join(op.text.split()), span=op.span)
    return _finding(path.misstep.code, profile, f"{who}: {path.misstep.message}", (access,), ())


def misuse_finding(solver: Solver, misuse: tuple[str, str, Uid], profile: str) -> Finding:
    """A misuse of an mbarrier that some order of its operations leads to."""
    code, message, uid = misuse
    event = solver.s.events[uid]
    who = solver.s.program.threads[uid[0]].name
    access = Access(thread=who, instruction=" ".join(event.op.text.split()), span=event.op.span)
    return _finding(code, profile, f"{who}: {message}", (access,), ())


def _deadlock_code(op: Op) -> str:
    match op:
        case MbarrierWait():
            return "DEAD003"
        case ClusterBarrier():
            return "DEAD005"
        case Barrier() | WarpSync():
            return "DEAD002"
        case Await(inner=MbarrierWait()):
            return "DEAD003"
        case Await():
            return "DEAD004"
    return "DEAD001"


WAITS = "waits for ever"


def waiting_nodes(s: Structure, paths: tuple[Path, ...]) -> tuple[int, ...]:
    """The event of each thread at which it waits for ever."""
    out = []
    for path in paths:
        if path.end == "stuck":
            events = [e for u in path.stuck[-1:] for e in s.nodes_of[u]]
            blocked = [n.index for n in s.nodes if n.thread == path.thread and n.has("BLOCKED")]
            out += events or blocked[-1:]
    return tuple(out)


def deadlock_finding(solver: Solver, candidate: Candidate, paths: tuple[Path, ...], profile: str) -> Finding:
    """Who waits for ever, and where."""
    s = solver.s
    waiting: list[Access] = []
    code = "DEAD001"
    for path in paths:
        if path.end != "stuck":
            continue
        last = s.events[path.stuck[-1]].op if path.stuck else None
        op = path.at if isinstance(path.at, Await) or last is None else last
        if op is None:
            continue
        if not waiting:
            code = _deadlock_code(op)
        waiting.append(
            Access(thread=s.program.threads[path.thread].name, instruction=" ".join(op.text.split()), span=op.span)
        )
    message = "wait for ever: " + "; ".join(f"{a.thread} at {a.instruction}" for a in waiting)
    return _finding(code, profile, message, tuple(waiting), describe(solver, candidate))
