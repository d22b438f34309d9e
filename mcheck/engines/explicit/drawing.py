"""Turns a candidate into a drawable execution: events are grouped into boxes, relations reduced to edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import pairwise

from mcheck.answers.missing_arrivals import find_lack, phases_of
from mcheck.answers.number_text import UNKNOWN, format_contents, format_number
from mcheck.answers.result import State
from mcheck.answers.witnesses import element_size
from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.explanation import Step
from mcheck.cat.tags import Tag, proxy_of
from mcheck.engines.explicit.candidate_check import Settled
from mcheck.events.choices.candidate import Candidate, CircularValue, Undetermined, Valuation
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event
from mcheck.events.execution_graph import Band, Box, Column, Edge, Execution, Hop
from mcheck.events.structure import INIT, Node, Structure
from mcheck.findings.finding import format_range
from mcheck.ir.ops import Op
from mcheck.semantics.terms import Uid, Unknown

MAX_LINES = 4
DRAWN_AS = {"syncbar": "barrier", "meet": "barrier"}
"""Relations that a picture shows under another name."""
Pair = tuple[int, int]


@dataclass(slots=True)
class _Group:
    """The nodes of one box."""

    nodes: list[int]
    asynchronous: bool
    column: int = -1


@dataclass(slots=True)
class _Drawing:
    prepared: Prepared
    candidate: Candidate
    settled: Settled
    valuation: Valuation
    groups: list[_Group] = field(default_factory=list)
    box_of: dict[int, int] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    phases: dict[Uid, int] = field(default_factory=dict)

    @property
    def s(self) -> Structure:
        return self.prepared.s


def execution_of(
    prepared: Prepared,
    candidate: Candidate,
    *,
    model: str,
    state: State,
    settled: Settled,
    explain: bool = False,
    marked: Iterable[int] = (),
    note: str = "",
    stops: Iterable[tuple[int, Op, str]] = (),
) -> Execution:
    """The execution of a candidate for drawing. ``explain``: the model forbids it, and the axiom with its edges is
    wanted.

    ``marked``: nodes to highlight, the two accesses of a race, with a ``note`` in their boxes. ``stops``: the
    operations at which threads stop, each with a text.
    """
    d = _Drawing(prepared, candidate, settled, prepared.valuation(candidate))
    d.phases = phases_of(prepared, candidate)
    violation = settled.violation if explain else None
    steps = violation.steps if violation else ()
    _group(d, {x for step in steps for x in (step.source, step.target)})
    chosen = set(marked)
    names = _names()
    boxes = [_box(d, g, next(names), note if chosen & set(g.nodes) else None) for g in d.groups]
    edges = _edges(d, steps)
    for thread, op, told in stops:
        edges += _stopped(d, boxes, thread, op, told)
    return Execution(
        name=d.s.program.name,
        model=model,
        state=tuple((label, _show(value)) for label, value in state),
        columns=tuple(d.columns),
        boxes=tuple(boxes),
        edges=edges,
        bands=_bands(d),
        axiom=violation.axiom if violation else None,
        walk=_walk(d, steps),
    )


def _show(value: object) -> str:
    return format_number(value) if isinstance(value, int) else str(value)


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    k = 0
    while True:
        round_, letter = divmod(k, 26)
        yield letters[letter] + (str(round_) if round_ else "")
        k += 1


# --- boxes -------------------------------------------------------------------------------------------------


def _key(s: Structure, node: Node) -> tuple[object, ...] | None:
    """The key of a node's box: its instruction, or the reads, writes or signal of an asynchronous operation."""
    event = node.source
    if event is None:
        return ("init", node.address)
    if Tag.EXIT in event.tags or Tag.START in event.tags:
        return None
    if event.order is not None:
        return (node.thread, "at", event.instruction)
    kind = "signal" if Tag.ASYNCSIGNAL in event.tags else "update" if event.rmw or _updates(s, event) else ""
    return (node.thread, "of", event.issue, event.instruction, kind or ("write" if Tag.W in event.tags else "read"))


def _updates(s: Structure, event: Event) -> bool:
    """Whether an asynchronous read is half of the read-modify-write of an element."""
    return any(e.rmw == event.uid for e in s.paths[event.uid[0]].events if e.issue == event.issue)


def _group(d: _Drawing, needed: set[int]) -> None:
    """The boxes in the order of the events, and their columns; asynchronous operations are beside their thread."""
    s = d.s
    by_key: dict[tuple[object, ...], _Group] = {}
    for node in s.nodes:
        if node.source is None and node.index not in needed:
            continue
        key = _key(s, node)
        if key is None:
            if node.index not in needed:
                continue
            key = (node.thread, "end", node.index)
        asynchronous = node.source is not None and node.source.order is None
        by_key.setdefault(key, _Group([], asynchronous)).nodes.append(node.index)
    initial = [g for k, g in by_key.items() if k[0] == "init"]
    for thread in [*([INIT] if initial else []), *range(len(s.program.threads))]:
        own = [g for k, g in by_key.items() if k[0] == thread] if thread >= 0 else initial
        if not own:
            continue
        t = s.program.threads[thread] if thread >= 0 else None
        first = len(d.columns)
        d.columns.append(Column(t.name if t else "initially", _place(t.place) if t else "", thread))
        beside: dict[Uid | None, int] = {}
        for g in own:
            if not g.asynchronous:
                g.column = first
                continue
            source = s.nodes[g.nodes[0]].source
            assert source is not None
            if source.issue not in beside:
                beside[source.issue] = len(d.columns)
                d.columns.append(Column(f"copy of {t.name}" if t else "", "asynchronous", thread, asynchronous=True))
            g.column = beside[source.issue]
        d.groups += own
    for k, g in enumerate(d.groups):
        for n in g.nodes:
            d.box_of[n] = k


def _place(place: object) -> str:
    cta = place.cta  # type: ignore[attr-defined]
    parts = [f"gpu {cta.gpu}"] if cta.gpu else []
    return ", ".join([*parts, f"cta {cta.number}"])


def _stopped(d: _Drawing, boxes: list[Box], thread: int, op: Op, told: str) -> tuple[Edge, ...]:
    """Adds a box for an operation without events at which a thread stops; returns its position in program order."""
    column = next((k for k, c in enumerate(d.columns) if c.thread == thread and not c.asynchronous), -1)
    if column < 0:
        t = d.s.program.threads[thread]
        column = len(d.columns)
        d.columns.append(Column(t.name, _place(t.place), thread))
    before = [k for k, b in enumerate(boxes) if b.column == column]
    name = next(n for k, n in enumerate(_names()) if k == len(boxes))
    text, line = " ".join(op.text.split()), op.span.line if op.span else 0
    boxes.append(Box(name=name, kind="stop", column=column, lines=(told,), text=text, marked=True, line=line))
    return (Edge(source=before[-1], target=len(boxes) - 1, kind="po"),) if before else ()


ENDS = {Tag.START: ("start", "the thread begins"), Tag.EXIT: ("exit", "the thread ends")}
"""Events without an instruction, drawn where they show why an execution is forbidden."""


def _box(d: _Drawing, g: _Group, name: str, note: str | None) -> Box:
    """The box of a group; with a ``note``, empty or not, it is marked."""
    s = d.s
    nodes = [s.nodes[n] for n in g.nodes]
    first = nodes[0].source
    if first is None:
        return Box(name=name, kind="init", column=g.column, lines=(f"W {_effect(d, nodes[0])}",), text="initial value")
    tags = frozenset().union(*(n.source.tags for n in nodes if n.source is not None))
    if ends := tags & ENDS.keys():
        line, text = ENDS[next(iter(ends))]
        return Box(name=name, kind="exit", column=g.column, lines=(line,), text=text)
    told = [line for n in _ends(nodes) if (line := _line(d, n))]
    lines = list(dict.fromkeys(told)) or [_plain(tags)]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"and {len(lines) - MAX_LINES + 1} more"]
    if note:
        lines.append(note)
        lines += _pending(d, nodes[-1]) if Tag.BLOCKED not in tags else []
    text = " ".join(first.op.text.split()) or type(first.op).__name__
    proxy = proxy_of(tags) if Tag.M in tags else "generic"
    span = first.op.span
    return Box(
        name=name, kind=_kind(tags), column=g.column, lines=tuple(lines), text=text, proxy=proxy,
        asynchronous=g.asynchronous, marked=note is not None, line=span.line if span else 0,
    )  # fmt: skip


def _ends(nodes: list[Node]) -> list[Node]:
    """The nodes without the reads of read-modify-writes, which the lines of their writes show."""
    halves = {n.source.rmw for n in nodes if n.source is not None and n.source.rmw is not None}
    return [n for n in nodes if n.source is None or n.source.uid not in halves]


def _kind(tags: frozenset[Tag]) -> str:
    if Tag.ASYNCSIGNAL in tags:
        return "signal"
    if {Tag.R, Tag.W} <= tags:
        return "update"
    order = (
        (Tag.R, "read"), (Tag.W, "write"), (Tag.ISSUE, "issue"), (Tag.WAIT, "wait"), (Tag.GROUPWAIT, "wait"),
        (Tag.PROXYWAIT, "wait"),
        (Tag.MBAR, "mbarrier"), (Tag.B, "barrier"), (Tag.MEET, "barrier"), (Tag.MET, "barrier"),
        (Tag.PROXYFENCE, "proxy-fence"), (Tag.F, "fence"),
    )  # fmt: skip
    return next((kind for tag, kind in order if tag in tags), "fence")


COMES, LEAVES = frozenset({Tag.BARRIVE, Tag.MEET}), frozenset({Tag.BWAIT, Tag.MET})
"""Arrivals at a barrier or a warp-level synchronisation, and departures from it."""


def _plain(tags: frozenset[Tag]) -> str:
    kind = _kind(tags)
    names = {"proxy-fence": "proxy fence", "issue": "issue", "wait": "wait for groups", "barrier": "barrier"}
    if kind == "barrier" and not tags & LEAVES and tags & COMES:
        return "barrier: arrive"
    if kind == "barrier" and not tags & COMES and tags & LEAVES:
        return "barrier: wait"
    if kind == "issue" and Tag.CPASYNC not in tags:
        return "issue"
    return names.get(kind, kind)


def _line(d: _Drawing, node: Node) -> str:
    """A short text for the effect of an event."""
    event = node.source
    assert event is not None
    if event.mbarrier is not None:
        return _mbarrier_line(d, event)
    if not node.size:
        return ""
    where = _object(d.s, node)
    if Tag.W in event.tags and event.rmw is not None:
        old = next((r for r in d.s.nodes_of[event.rmw] if d.s.nodes[r].address == node.address), None)
        before = "?" if old is None else _value(d, node, lambda: d.valuation.write(d.valuation.source(old)))
        return f"U {where}: {before} \N{RIGHTWARDS ARROW} {_value(d, node, lambda: d.valuation.write(node.index))}"
    if Tag.R in event.tags:
        return f"R {where} = {_value(d, node, lambda: d.valuation.write(d.valuation.source(node.index)))}"
    return f"W {_effect(d, node)}"


def _effect(d: _Drawing, node: Node) -> str:
    return f"{_object(d.s, node)} = {_value(d, node, lambda: d.valuation.write(node.index))}"


def _mbarrier_line(d: _Drawing, event: Event) -> str:
    what = event.mbarrier
    assert what is not None
    where = _object_of(d.s, what.address, 8)
    phase = d.phases.get(event.uid)
    at = f", phase {phase}" if phase is not None and phase >= 0 else ""
    match what.kind:
        case "init":
            return f"init {where}, count {what.count}"
        case "inval":
            return f"inval {where}"
        case "wait":
            answer = _answer(lambda: bool(d.valuation.of(event.uid)))
            meant = f"parity {what.parity}" if what.parity is not None else "state"
            return f"wait {where}, {meant}: {answer}"
        case "complete":
            return f"complete-tx {what.tx} {where}{at}"
        case "expect":
            return f"expect-tx {what.tx} {where}{at}"
        case "drop":
            return f"arrive-drop {where}{at}"
        case "increment":
            return f"pending count of {where} + 1"
    announced = f" (tx +{what.tx})" if what.tx else ""
    return f"arrive {where}{announced}{at}"


def _pending(d: _Drawing, node: Node) -> list[str]:
    """What the phase that a wait waits for still lacks, if known."""
    event = node.source
    if event is None or event.mbarrier is None or event.mbarrier.kind != "wait":
        return []
    lack = find_lack(d.s, d.phases, event.mbarrier.address)
    if lack is None:
        return []
    told = [f"phase {lack.phase}: {lack.arrived} of {lack.count} arrivals"]
    missing = lack.expected - lack.received
    return told + ([f"{missing} bytes pending"] if missing else [])


def _answer(compute: Callable[[], bool]) -> str:
    try:
        return "true" if compute() else "false"
    except (Unknown, Undetermined, CircularValue):
        return "?"


def _value(d: _Drawing, node: Node, compute: Callable[[], int]) -> str:
    try:
        return format_contents(compute(), node.size, element_size(d.s, node))
    except (Unknown, Undetermined, CircularValue):
        return UNKNOWN


def _object(s: Structure, node: Node) -> str:
    return _object_of(s, node.address, node.size)


def _object_of(s: Structure, address: int, size: int) -> str:
    """The name of an object: ``x``, ``buf[2]``, ``buf[bytes 0..16]``; with the CTA only if objects of several CTAs
    occur.
    """
    shared = {i.cta.number for i in s.program.memory.instances if i.cta is not None}
    for instance in s.program.memory.instances:
        start, data = address - instance.physical, instance.object
        if instance.base == instance.physical and 0 <= start < data.size:
            label = instance.label if len(shared) > 1 else data.name
            if start == 0 and size == data.size:
                return label
            if size == data.elem_size and start % size == 0 and data.dims:
                return f"{label}{_indices(start // size, data.dims)}"
            return format_range(label, start, start + size)
    return hex(address)


def _indices(k: int, dims: tuple[int, ...]) -> str:
    out = ""
    for n in reversed(dims):
        out = f"[{k % n}]{out}"
        k //= n
    return out


# --- edges -------------------------------------------------------------------------------------------------


def _edges(d: _Drawing, steps: tuple[Step, ...]) -> tuple[Edge, ...]:
    found: dict[tuple[int, int, str], None] = {}

    def add(a: int | None, b: int | None, kind: str) -> None:
        if a is not None and b is not None and a != b:
            found[a, b, kind] = None

    columns: dict[int, list[int]] = {}
    for k, g in enumerate(d.groups):
        if not g.asynchronous:
            columns.setdefault(g.column, []).append(k)
    for column, boxes in columns.items():
        if d.columns[column].thread >= 0:
            for a, b in pairwise(boxes):
                add(a, b, "po")
    for a, b, kind in _pairs(d):
        add(d.box_of.get(a), d.box_of.get(b), kind)
    wrong: dict[tuple[int, int, str], None] = {}
    for step in steps:
        a, b, kind = step.source, step.target, step.kind
        if kind.endswith("^-1"):
            a, b, kind = b, a, kind.removesuffix("^-1")
        kind = DRAWN_AS.get(kind, kind)
        x, y = d.box_of[a], d.box_of[b]
        if x != y:
            wrong[x, y, kind] = None
            found.setdefault((x, y, kind), None)
    out = []
    for a, b, kind in found:
        if kind == "barrier" and (b, a, kind) in found:
            if a < b:
                bad = (a, b, kind) in wrong or (b, a, kind) in wrong
                out.append(Edge(source=a, target=b, kind=kind, violated=bad, both=True))
            continue
        out.append(Edge(source=a, target=b, kind=kind, violated=(a, b, kind) in wrong))
    return tuple(sorted(out, key=lambda e: (e.kind, e.source, e.target)))


def _pairs(d: _Drawing) -> Iterable[tuple[int, int, str]]:
    """The relations to draw, reduced to the informative pairs."""
    s, n = d.s, d.s.size
    chosen = d.settled.relations
    none = bits.empty(n)
    rf, co = chosen.get("rf", none), chosen["co"]
    for i, j in _of(rf):
        yield i, j, "rf"
    reduced = _reduced(co)
    for i, j in _of(reduced):
        if s.nodes[i].source is not None:
            yield i, j, "co"
    readers: dict[int, list[int]] = {}
    for w, r in _of(rf):
        readers.setdefault(w, []).append(r)
    for w, reads in readers.items():
        for x in bits.bits(reduced[w]):
            later = s.nodes[x].source
            for r in reads:
                source = s.nodes[r].source
                if (
                    source is not None
                    and later is not None
                    and later.rmw != source.uid
                    and d.box_of.get(r) != d.box_of.get(x)
                ):
                    yield r, x, "fr"
    for node in s.nodes:
        event = node.source
        if event is not None and event.issue is not None and event.order is None:
            here = s.nodes_of.get(event.issue)
            fed = any(s.events[e].issue == event.issue for e in event.data)
            if here and not fed and (Tag.ASYNCSIGNAL not in event.tags or not _tracked(d, event.uid)):
                yield here[0], node.index, "issue"
            for uid in sorted(event.data):
                if s.events[uid].issue == event.issue:
                    for r in s.nodes_of[uid][:1]:
                        yield r, node.index, "data"
    yield from _completions(d)
    yield from _waits(d, chosen)
    for name in ("barrier", "meet", "syncbar"):
        for i, j in _of(chosen.get(name, none)):
            yield i, j, "barrier"
    for i, j in _of(_reduced(chosen.get("sync_fence", none))):
        yield i, j, "sync_fence"


def _tracked(d: _Drawing, signal: Uid) -> bool:
    return any(signal == done for path in d.s.paths for _, done in path.tracked)


def _completions(d: _Drawing) -> Iterable[tuple[int, int, str]]:
    """Edges from the last accesses of an asynchronous operation to its signal, or to the first wait of its group."""
    s = d.s
    for path in d.s.paths:
        tracked = [m for m, _ in path.tracked]
        for memory, signal in path.tracked:
            if s.nodes_of[memory] and not _feeds(s, memory, tracked):
                yield s.nodes_of[memory][0], s.nodes_of[signal][0], "complete"
        first: dict[Uid, Uid] = {}
        for memory, wait in path.completes:
            if memory not in first or (s.events[wait].order or 0) < (s.events[first[memory]].order or 0):
                first[memory] = wait
        for memory, wait in first.items():
            same = [m for m, w in first.items() if w == wait]
            if s.nodes_of[memory] and not _feeds(s, memory, same):
                yield s.nodes_of[memory][0], s.nodes_of[wait][0], "complete"


def _feeds(s: Structure, memory: Uid, others: list[Uid]) -> bool:
    """Whether one of the others depends on this read, so that the completion of that implies its completion."""
    return any(memory in s.events[o].data for o in others)


def _waits(d: _Drawing, chosen: dict[str, Rows]) -> Iterable[tuple[int, int, str]]:
    """Phase edges: from the operations that count in a phase to the first wait of each thread that sees it complete."""
    s = d.s
    seen: set[tuple[int, int, int]] = set()
    for j, sources in enumerate(bits.inverse(chosen.get("phase", bits.empty(s.size)))):
        if not sources:
            continue
        wait = s.nodes[j]
        into = [(d.phases.get(e.uid, 0), i) for i in bits.bits(sources) if (e := s.nodes[i].source) is not None]
        last = max(p for p, _ in into)
        assert wait.source is not None and wait.source.mbarrier is not None
        key = (wait.source.mbarrier.address, last, wait.thread)
        if key in seen:
            continue
        seen.add(key)
        for p, i in into:
            if (p == last and s.nodes[i].thread != wait.thread) or (p == last and s.nodes[i].source.order is None):  # type: ignore[union-attr]
                yield i, j, "phase"


def _of(rows: Rows) -> Iterable[Pair]:
    return ((i, j) for i, row in enumerate(rows) for j in bits.bits(row))


def _reduced(rows: Rows) -> Rows:
    """The transitive reduction of the pairs."""
    two = bits.compose(rows, rows)
    return [row & ~far for row, far in zip(rows, two, strict=True)]


def _bands(d: _Drawing) -> tuple[Band, ...]:
    """The phases of each mbarrier, with the operations that count in them."""
    members: dict[tuple[int, int], list[int]] = {}
    for uid, phase in d.phases.items():
        event = d.s.events[uid]
        if phase >= 0 and event.mbarrier is not None and event.mbarrier.kind not in ("wait", "inval"):
            box = d.box_of.get(d.s.nodes_of[uid][0])
            if box is not None:
                members.setdefault((event.mbarrier.address, phase), []).append(box)
    return tuple(
        Band(_object_of(d.s, address, 8), phase, tuple(sorted(set(boxes))))
        for (address, phase), boxes in sorted(members.items())
    )


def _walk(d: _Drawing, steps: tuple[Step, ...]) -> tuple[Hop, ...]:
    """The steps of a cycle between boxes; steps within a box are omitted, unless there are no others."""
    hops = []
    for step in steps:
        kind, back = step.kind.removesuffix("^-1"), step.kind.endswith("^-1")
        ends, effects = (
            (d.box_of[step.source], d.box_of[step.target]),
            (_effect_text(d, step.source), _effect_text(d, step.target)),
        )
        hops.append(Hop(*ends, DRAWN_AS.get(kind, kind), back, effects))
    return tuple(hop for hop in hops if hop.source != hop.target) or tuple(hops)


def _effect_text(d: _Drawing, n: int) -> str:
    """A text for the effect of a node; both halves of a read-modify-write."""
    node = d.s.nodes[n]
    if node.source is None:
        return f"W {_effect(d, node)}"
    if node.source.tags & ENDS.keys():
        return ""
    whole = (w for w in d.s.writes.get(node.address, ()) if (e := d.s.nodes[w].source) and e.rmw == node.source.uid)
    return _line(d, d.s.nodes[next(whole, n)] if node.size else node)
