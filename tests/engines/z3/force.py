"""Every order of the operations on an mbarrier, by the rules of PTX ISA 9.7.13.15 written down once more."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.events.choices import mbarrier_phases
from mcheck.events.choices.candidate import Option
from mcheck.events.choices.phase_assignment import SIGNALS, Members
from mcheck.events.event import Event, MbarrierStep
from mcheck.events.structure import Structure
from mcheck.semantics.terms import Uid

Shown = tuple[object, ...]
Told = tuple[int, int, int | None, bool, frozenset[Uid] | None, bool]
"""Life, phase, result, whether it completes the phase, what the phase had before it (no wait), whether that matters."""


def shown(option: Option) -> Shown:
    """What distinguishes two options: relations, results, misuse, remarks."""
    edges = {(name, i, j) for name, pairs in option.edges for i, j in pairs}
    misuse = option.misstep and (option.misstep[0], option.misstep[2])
    return frozenset(edges), frozenset(option.results), misuse, frozenset((c, u) for c, _, u in option.remarks)


def orders(
    events: list[Event], issued: dict[Uid, int], late: frozenset[Uid], waited: frozenset[Uid]
) -> Iterator[list[Event]]:
    """Every order that keeps program order and signals nothing before its issue; waits that never succeed come last.

    An initialisation that can come first does, and before which its thread waits for nobody: whether something comes
    before it is a matter of causality.
    """

    def ready(e: Event, left: list[Event]) -> bool:
        limit = issued.get(e.uid, e.order if e.order is not None else -1)
        for x in left:
            if x.uid[0] == e.uid[0] and x.order is not None and x.uid != e.uid:
                sooner = x.order < limit if e.order is None else x.uid[1] < e.uid[1]
                if sooner:
                    return False
        return e.uid not in late or all(x.uid in late for x in left)

    inits = [e for e in events if e.mbarrier and e.mbarrier.kind == "init" and e.uid not in waited]
    fresh = any(ready(e, events) for e in inits)

    def extend(done: list[Event], left: list[Event]) -> Iterator[list[Event]]:
        if not left:
            yield done
        for e in left:
            if ready(e, left) and (done or not fresh or e in inits):
                yield from extend([*done, e], [x for x in left if x is not e])

    yield from extend([], events)


class Object:
    """An mbarrier object, its memory and what threads know of it."""

    def __init__(self) -> None:
        self.valid = self.gone = False
        self.life = -1
        self.phase = self.expected = self.pending = self.tx = 0
        self.tokens: dict[Uid, int] = {}

    def step(self, e: Event) -> tuple[str, int | None, bool]:
        """(misuse or nothing, what it returns, whether it completes a phase) of an operation."""
        what = e.mbarrier
        assert what is not None
        if what.kind == "init":
            if self.valid:
                return "UB202", None, False
            self.valid, self.phase, self.tx, self.life = True, 0, 0, self.life + 1
            self.expected = self.pending = what.count
            return "", None, False
        if not self.valid:
            return ("UB215" if self.gone and e.order is None else "UB201"), None, False
        if what.kind == "inval":
            self.valid, self.gone = False, True
            return "", None, False
        if what.kind == "wait":
            return self._wait(e)
        before = self.pending
        self.tx += -(what.tx or 0) if what.kind == "complete" else what.tx or 0
        if what.kind == "increment":
            self.pending += 1
            return "", None, False
        if what.kind == "expect":
            return ("UB217" if self.pending == 0 and self.tx == 0 and what.tx else ""), None, False
        count = {"complete": 0, "async-arrive": 1}.get(what.kind, what.count)
        if count > self.pending:
            return "UB205", None, False
        if what.kind == "drop":
            if self.expected < count:
                return "UB205", None, False
            self.expected -= count
            if not self.expected:
                return "UB207", None, False
        self.pending -= count
        over = self.pending == 0 and self.tx == 0
        if over and what.no_complete:
            return "UB206", None, False
        token = None
        if what.kind in ("arrive", "drop"):
            self.tokens[e.uid] = self.phase
            token = before | what.no_complete << 20 | self.phase << 21 | (what.address // 8 + 1) % (1 << 24) << 40
        if over:
            self.phase, self.pending = self.phase + 1, self.expected
        return "", token, over

    def matters(self, what: MbarrierStep, pending: int, tx: int) -> bool:
        """Whether the phases depend on what came before this operation, which found the object like that.

        Arrivals and bytes commute while arrivals are pending; afterwards completions do while they leave bytes due.
        """
        if what.kind in ("increment", "inval") or what.no_complete:
            return True
        if what.kind in ("arrive", "drop", "async-arrive"):
            return self.pending == 0
        if what.kind == "expect":
            return pending == 0
        return what.kind == "complete" and pending == 0 and tx > 0 > self.tx

    def _wait(self, e: Event) -> tuple[str, int | None, bool]:
        what = e.mbarrier
        assert what is not None
        if what.parity is None:
            assert isinstance(what.state, tuple)
            of = self.tokens.get(what.state[1])
            if of is None or self.phase - of not in (0, 1):
                return "UB210", None, False
            answer = self.phase > of
        else:
            answer = self.phase % 2 != what.parity
        return "", int(answer), False


def by_force(s: Structure, members: Members, late: frozenset[Uid]) -> set[Shown]:
    """The options of an mbarrier, from all orders of its operations."""
    events = [e for e, _ in members]
    node = {e.uid: n for e, n in members}
    issued = {e.uid: s.events[e.issue].order or 0 for e in events if e.issue is not None and e.order is None}
    admitted = mbarrier_phases.allowed_results(s)
    found: set[Shown] = set()
    waited = frozenset(
        e.uid
        for e in events
        for x in s.events.values()
        if e.order is not None and x.uid[0] == e.uid[0] and (x.order or 0) < e.order
        if (x.mbarrier and x.mbarrier.kind == "wait") or x.tags & {"R", "BWAIT", "GROUPWAIT"}
    )
    for order in orders(events, issued, late, waited):
        it = Object()
        told: dict[Uid, Told] = {}
        misuse: tuple[str, Uid] | None = None
        owed = False  # by an object that was invalidated
        for e in order:
            now = it.phase if e.mbarrier and e.mbarrier.kind != "init" else -1
            pending, tx = it.pending, it.tx
            owed = owed or (it.valid and e.mbarrier is not None and e.mbarrier.kind == "inval" and it.tx < 0)
            wrong, answer, completed = it.step(e)
            if wrong:
                misuse = (wrong, e.uid)
                break
            if e.mbarrier and e.mbarrier.kind == "wait" and answer not in admitted.get(e.uid, (0, 1)):
                break
            inside = frozenset(u for u, r in told.items() if r[:2] == (it.life, now) and r[4] is not None)
            matters = completed or (e.mbarrier is not None and it.matters(e.mbarrier, pending, tx))
            waits = e.mbarrier is not None and e.mbarrier.kind in ("wait", "init")
            told[e.uid] = (it.life, now, answer, completed, None if waits else inside, matters)
        else:
            if owed or (it.valid and it.tx < 0):
                signals = [e for e in events if e.mbarrier and e.mbarrier.kind == "complete" and e.order is None]
                blamed = signals[-1] if signals else last_completion(events)
                found.add(relations(events, node, told, ("UB216", blamed.uid)))
        if misuse is not None or len(told) == len(events):
            found.add(relations(events, node, told, misuse))
    return found


def last_completion(events: list[Event]) -> Event:
    """The last completion of the last thread that has one, threads in the order in which they appear."""
    threads = list(dict.fromkeys(e.uid[0] for e in events))
    completions = [e for e in events if e.mbarrier and e.mbarrier.kind == "complete"]
    return max(completions, key=lambda e: (threads.index(e.uid[0]), e.uid[1]))


def relations(
    events: list[Event],
    node: dict[Uid, int],
    told: dict[Uid, Told],
    misuse: tuple[str, Uid] | None,
) -> Shown:
    """What an assignment says, as ``shown`` has it."""
    edges: set[tuple[str, int, int]] = set()
    kind = {e.uid: e.mbarrier.kind for e in events if e.mbarrier}
    for a, (life, phase, *_, inside, matters) in told.items():
        peers = [b for b, r in told.items() if r[:2] == (life, phase) and r[4] is not None and b != a]
        for b in peers if matters and inside is not None else ():
            edges.add(("phase-order", node[b], node[a]) if b in inside else ("phase-order", node[a], node[b]))
    for a, (life, phase, *_) in told.items():
        for b, of in kind.items():
            if a == b:
                continue
            if b not in told:
                edges.add(("phase-order", node[a], node[b]))
                continue
            other = told[b]
            if kind[a] != "wait" and (life, phase) < other[:2]:
                edges.add(("phase-order", node[a], node[b]))
                if kind[a] in SIGNALS and of == "wait" and other[2] and life == other[0]:
                    edges.add(("phase", node[a], node[b]))
            ends = other[3] or of == "inval"
            later = (life, phase) < other[:2] or ((life, phase) == other[:2] and ends)
            if kind[a] == "wait" and of != "wait" and later:
                edges.add(("phase-fr", node[a], node[b]))
    if misuse is not None and kind[misuse[1]] == "init" and misuse[1] not in told:
        wrong = misuse[1]
        edges |= {("phase", node[a], node[wrong]) for a in told if kind[a] == "init"}
        edges |= {("phase", node[wrong], node[b]) for b in kind if b not in told and b != wrong}
    if misuse is not None and misuse[1] not in told:
        edges |= {("phase-order", node[misuse[1]], node[b]) for b in kind if b not in told and b != misuse[1]}
    results = frozenset((u, r[2]) for u, r in told.items() if r[2] is not None)
    seen = {(r[0], r[1] - 1) for u, r in told.items() if kind[u] == "wait" and r[2]}
    remarks = set()
    for e in events if misuse is None else ():
        life, phase = told[e.uid][:2]
        if kind[e.uid] in ("arrive", "drop", "async-arrive") and phase > 0 and (life, phase - 1) not in seen:
            seen.add((life, phase - 1))
            remarks.add(("UB212", e.uid))
    return frozenset(edges), results, misuse, frozenset(remarks)
