"""The execution graph of a candidate at a flagged pair, for ``mcheck.answers.advice``.

The steps of a candidate have no order of their own. They get one in which whatever orders two events in time is kept:
program order, and what a thread observes of another at barriers, mbarriers and by strong reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, GraphAgent, Signal, Step
from mcheck.answers.missing_arrivals import phases_of
from mcheck.answers.step_text import thing_at
from mcheck.cat.tags import Tag
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event
from mcheck.events.structure import Node, Structure
from mcheck.ir.ops import Branch, Commit, Op
from mcheck.ir.program import Thread
from mcheck.semantics.terms import Uid

IN_TIME = frozenset(("barrier", "syncbar", "phase", "complete"))
"""Relations that order one event before another in time, as does rf between strong accesses."""


def graph_of(prepared: Prepared, candidate: Candidate, pair: tuple[int, int]) -> ExecutionGraph | None:
    """The graph in which the accesses of ``pair`` race; ``None`` if no order of the steps shows the candidate."""
    s = prepared.s
    order = _find_order(s, _edges(prepared, candidate))
    if order is None:
        return None
    past: dict[int, int] = {}
    for index, before in order:
        past[index] = 1 << index
        for k in before:
            past[index] |= past[k]
    return _Builder(prepared, candidate, [index for index, _ in order], past).build(pair)


def _edges(prepared: Prepared, candidate: Candidate) -> dict[int, set[int]]:
    """For each event of a thread, those that are directly before it in time."""
    s = prepared.s
    before: dict[int, set[int]] = {n.index: set() for n in s.nodes if n.source is not None}
    for path in s.paths:
        last: list[int] = []
        own: list[int] = []
        at = -1
        for event in path.events:
            nodes = s.nodes_of[event.uid]
            if event.order is not None and event.order != at:
                last, own, at = own or last, [], event.order
            sources = last if event.order is not None else s.nodes_of[event.issue] if event.issue is not None else []
            for k in nodes:
                before[k].update(sources)
            own += nodes if event.order is not None else []
        for memory, done in (*path.tracked, *path.completes):
            for k in s.nodes_of[done]:
                before[k].update(s.nodes_of[memory])
    taken = ((c, k) for c, k in zip(prepared.choices, candidate, strict=True) if k >= 0)
    chosen = (edges for choice, k in taken for edges in choice.options[k].edges)
    for relation, pairs in (*chosen, *((r, ((a, b),)) for r, a, b in prepared.extra_edges)):
        for a, b in pairs:
            strong = not s.nodes[a].has(Tag.WEAK) and not s.nodes[b].has(Tag.WEAK)
            if a in before and b in before and (relation in IN_TIME or (relation == "rf" and strong)):
                before[b].add(a)
    return before


def _find_order(s: Structure, before: dict[int, set[int]]) -> list[tuple[int, set[int]]] | None:
    """The events in an order in time, each with those directly before it: a thread runs as long as it can, and what it
    issued completes as soon as it can; ``None`` if there is a circle.
    """
    left = {k: len(sources) for k, sources in before.items()}
    behind: dict[int, list[int]] = {}
    for k, sources in before.items():
        for source in sources:
            behind.setdefault(source, []).append(k)
    ready = {k for k, count in left.items() if not count}
    order: list[tuple[int, set[int]]] = []
    running = 0

    def rank(k: int) -> tuple[bool, bool, int]:
        event = s.nodes[k].source
        return event is None or event.order is not None, s.nodes[k].thread != running, k

    while ready:
        k = min(ready, key=rank)
        ready.discard(k)
        order.append((k, before[k]))
        event = s.nodes[k].source
        running = s.nodes[k].thread if event is not None and event.order is not None else running
        for other in behind.get(k, ()):
            left[other] -= 1
            if not left[other]:
                ready.add(other)
    return order if len(order) == len(before) else None


class _Builder:
    """The steps and accesses of a candidate whose events have an ``order``, and the events in the ``past`` of each."""

    def __init__(self, prepared: Prepared, candidate: Candidate, order: list[int], past: dict[int, int]) -> None:
        self.s, self.past, self.phases = prepared.s, past, phases_of(prepared, candidate)
        threads = self.s.program.threads
        tracked = dict.fromkeys(signal for path in self.s.paths for _, signal in path.tracked)
        self.clock = {uid: len(threads) + k for k, uid in enumerate(tracked)}
        self.number: dict[tuple[int, int], int] = {}
        """The step of an instruction of a thread, by its number among the instructions."""
        self.position: dict[tuple[int, int], int] = {}
        whole: dict[tuple[int, int], list[int]] = {}
        for k in order:
            event = self._event(k)
            if event.order is not None:
                whole.setdefault((self.s.nodes[k].thread, event.instruction), []).append(k)
        drafts: list[tuple[int, int, Op, int, list[int]]] = []
        counts, last = [0] * len(threads), [-1] * len(threads)
        for (thread, instruction), nodes in whole.items():
            op = self._event(nodes[0]).op
            pc = _find_place(threads[thread], op, last[thread])
            for at in _passed_commits(threads[thread], last[thread], pc):
                counts[thread] += 1
                drafts.append((thread, counts[thread], threads[thread].code[at], at, []))
            counts[thread] += 1
            self.number[thread, instruction] = counts[thread]
            self.position[thread, instruction] = len(drafts)
            drafts.append((thread, counts[thread], op, pc, nodes))
            last[thread] = pc
        known = [0] * len(threads)
        self.steps: list[Step] = []
        for thread, step, op, pc, nodes in drafts:
            for k in nodes:
                known[thread] |= past[k]
            self.steps.append(Step(thread, step, self._time(known[thread]), op, pc))

    def build(self, pair: tuple[int, int]) -> ExecutionGraph:
        """The graph up to the later one of two accesses."""
        s = self.s
        ends = sorted((s.nodes[k] for k in pair), key=lambda n: (self._position(n), n.index))
        old, new = map(self._access, ends)
        low, end = ends[0].address, new.position + 1
        agents = [GraphAgent(t.index, (t.index,), t.code, *self._end(t.index, end)) for t in s.program.threads]
        others = (n for n in s.nodes if n.source is not None and n.address <= low < n.address + n.size)
        before = [self._access(n) for n in others if n not in ends and self._position(n) < new.position]
        return ExecutionGraph(s.program, tuple(agents), self.steps[:end], old, new, before)

    def _end(self, thread: int, end: int) -> tuple[bool, Op | None]:
        """Whether a thread has ended by a position, and where it waits forever."""
        path = next(p for p in self.s.paths if p.thread == thread)
        over = path.end == "end" and all(e.agent != thread for e in self.steps[end:])
        return over, path.at if path.end == "stuck" else None

    def _event(self, node: int) -> Event:
        event = self.s.nodes[node].source
        assert event is not None
        return event

    def _issue(self, node: Node) -> tuple[int, int]:
        """The thread and the instruction that make or issue an access."""
        event = self._event(node.index)
        issue = self.s.events[event.issue] if event.order is None and event.issue is not None else event
        return node.thread, issue.instruction

    def _position(self, node: Node) -> int:
        return self.position[self._issue(node)]

    def _access(self, node: Node) -> GraphAccess:
        event, key = self._event(node.index), self._issue(node)
        path = next(p for p in self.s.paths if p.thread == node.thread)
        done = (self.s.events[w] for u, w in path.completes if u == event.uid)
        waits = ((w.uid[0], self.number[w.uid[0], w.instruction]) for w in done if w.order is not None)
        signals = (self._signal(uid) for u, uid in path.tracked if u == event.uid)
        step = self.steps[self.position[key]]
        return GraphAccess(node.thread, step.step, self.position[key], event, step.time, tuple(waits), tuple(signals))

    def _signal(self, uid: Uid) -> Signal:
        step = self.s.events[uid].mbarrier
        address = step.address if step is not None else 0
        instance = self.s.program.memory.find(address)
        cta = instance.cta if instance is not None else None
        bar, phase = thing_at(self.s.program, address), max(self.phases.get(uid, 0), 0)
        return Signal(bar, cta, phase, self.clock[uid], 0)

    def _time(self, known: int) -> list[int]:
        """A set of events as a clock: the steps of each thread, and which completions have been signalled."""
        time = [0] * (len(self.s.program.threads) + len(self.clock))
        while known:
            k = known.bit_length() - 1
            known ^= 1 << k
            event, thread = self._event(k), self.s.nodes[k].thread
            if event.order is not None:
                time[thread] = max(time[thread], self.number[thread, event.instruction])
            if event.uid in self.clock:
                time[self.clock[event.uid]] = 1
        return time


def _find_place(thread: Thread, op: Op, last: int) -> int:
    """The place in the code of an operation that a thread executes after the one at ``last``."""
    places = [k for k, other in enumerate(thread.code) if other is op or other.span == op.span]
    return next((k for k in places if k > last), places[0] if places else last)


def _passed_commits(thread: Thread, last: int, pc: int) -> Iterator[int]:
    """The commits, which have no events, between two operations that a thread executes after each other: on the way
    that goes past as little as it can.
    """
    k = last + 1
    for _ in thread.code:
        if k == pc or k >= len(thread.code):
            return
        op = thread.code[k]
        if isinstance(op, Commit) and op.guard is None:
            yield k
        k += 1
        if isinstance(op, Branch):
            target = thread.labels[op.target]
            always = op.condition is None and op.guard is None
            if always or (k <= target <= pc) or target <= pc < k:
                k = target
