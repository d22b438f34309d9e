"""The symbolic state of a thread on a path: registers, events so far, constraints of the branches taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from mcheck.base.declared_state import (
    IN_OWNER,
    SHALLOW,
    SHARED,
    VALUE,
    WRITTEN_OUT,
    Attribute,
    Naming,
    Unnamed,
    copier_of,
    declare_state,
    mapped,
    state,
)
from mcheck.base.records import dataclass, replace
from mcheck.cat.tags import Tag
from mcheck.events.event import Event, Misstep, Path, ends_pending_waits
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import Term, Uid, Unknown, evaluate, reads_of


@dataclass(slots=True)
class AsyncRecord:
    """An asynchronous operation in flight: its memory events, and the bytes that it writes."""

    reads: tuple[Uid, ...]
    writes: tuple[Uid, ...]
    family: str
    destinations: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Groups:
    """The asynchronous operations of one family: not yet committed, and the committed groups, oldest first."""

    open: list[AsyncRecord] = field(default_factory=list)
    committed: list[tuple[AsyncRecord, ...]] = field(default_factory=list)
    covered_by_signal: int = 0
    """How many of those that are open an mbarrier tells of: what follows may be ordered behind them."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A loop head on a path: the live registers that it had there since the last effect, each with the
    number
    of events before it; the effects so far; how often an iteration with effects came back.
    """

    seen: tuple[tuple[object, int], ...]
    effects: int
    count: int


@dataclass(slots=True)
class State:
    """Mutable while a path is followed; ``fork`` copies it."""

    registers: dict[str, Term]
    pc: int = 0
    events: list[Event] = field(default_factory=list)
    constraints: list[tuple[Term, bool]] = field(default_factory=list)
    known: dict[Uid, int] = field(default_factory=dict)
    unequal: set[tuple[Term, int]] = field(default_factory=set)
    facts: dict[Term, bool] = field(default_factory=dict)
    ctrl: frozenset[Uid] = frozenset()
    visits: dict[int, Visit] = field(default_factory=dict)
    groups: dict[str, Groups] = field(default_factory=dict)
    cp_async: list[AsyncRecord] = field(default_factory=list)
    piped: list[AsyncRecord] = field(default_factory=list)
    completes: list[tuple[Uid, Uid]] = field(default_factory=list)
    tracked: list[tuple[Uid, Uid]] = field(default_factory=list)
    cluster_arrived: bool = False
    order: int = 0
    instruction: int = 0
    effects: int = 0
    forked: bool = False
    arrived: int = -1
    ended: str = ""
    stuck: tuple[Uid, ...] = ()
    misstep: Misstep | None = None
    fixed: dict[Term, int] = field(default_factory=dict)
    idle: bool = False
    """Whether an iteration without effect is among the events, because what it does may be wrong."""
    fences: int = 0
    """Those of the events that no ``try_wait`` outlasts."""

    def add(self, event: Event) -> None:
        """Append an event of the thread."""
        self.events.append(event)
        if Tag.F in event.tags:
            self.fences += ends_pending_waits(event)

    def truncate(self, length: int) -> None:
        """Remove all events after the first ``length``."""
        self.fences -= sum(map(ends_pending_waits, self.events[length:]))
        del self.events[length:]

    def fork(self) -> State:
        forked: State = copier_of(State)(self, {})
        return forked

    def end_iteration(self, position: int, here: tuple[object, int]) -> None:
        """Record that an iteration has ended and may be repeated: ``here`` is what holds at the loop head."""
        seen = {pc: tuple(s for s in v.seen if s[1] < position) for pc, v in self.visits.items()}
        seen[self.pc] += (here,)
        self.visits = {pc: replace(self.visits[pc], seen=s) for pc, s in seen.items() if s}

    def path(self, thread: int, ending: str, at: Op | None, pc: int) -> Path:
        return Path(
            thread,
            tuple(self.events),
            tuple(self.constraints),
            self.registers,
            ending,
            self.stuck,
            self.misstep,
            tuple(self.completes),
            tuple(self.tracked),
            self.known,
            self.unfinished() if ending == "end" else (),
            at,
            pc,
        )

    def unfinished(self) -> tuple[Uid, ...]:
        """Asynchronous reads of shared memory by bulk groups that no wait of this thread covers."""
        waited = {m for m, _ in self.completes}
        groups = self.groups.get("bulk", Groups())
        records = [*groups.open, *(r for group in groups.committed for r in group)]
        reads = {u for r in records for u in r.reads} - waited
        if not reads:
            return ()
        return tuple(e.uid for e in self.events if e.uid in reads and Tag.SHARED in e.tags)

    # --- what the path has established about values -------------------------------------------------

    def resolve_term(self, term: Term) -> Term:
        """The value of a term if the path has fixed it, else the term."""
        if isinstance(term, int) or not self.known:
            return term
        uids = reads_of(term)
        if uids and all(u in self.known for u in uids):
            try:
                return evaluate(term, self.known.__getitem__)
            except Unknown:
                return term
        return term

    def assume(self, term: Term, value: int) -> None:
        """Constrain the path to the raw bits ``value`` of an event."""
        self.constraints.append((("x", "==", term, value), True))
        self._learn(term, value)

    def exclude_values(self, uid: Uid, values: Iterable[int]) -> State:
        """The path on which an event returns none of these values, so that its value is unknown."""
        fork = self.fork()
        for value in values:
            fork.constrain(("x", "==", ("e", uid), value), truth=False)
        fork.ended = "unknown"
        return fork

    def _learn(self, term: Term, value: int) -> None:
        if isinstance(term, int):
            return
        if term[0] == "e":
            size = self.events[term[1][1]].size
            self.known[term[1]] = value & ((1 << (8 * size)) - 1) if size else value
        elif term[0] == "typed" and isinstance(term[2], tuple) and term[2][0] == "e":
            self.known[term[2][1]] = value & ((1 << (8 * type_size(term[1]))) - 1)

    def truth(self, term: Term) -> bool | None:
        """Whether the path has already decided a condition."""
        term = self.resolve_term(term)
        if isinstance(term, int):
            return bool(term)
        comparison = _equality(term)
        if comparison is not None:
            a, c, positive = comparison
            if (a, c) in self.unequal:
                return not positive
            fixed = self.fixed.get(a)
            if fixed is None or (fixed != c and (fixed - c) % 256 == 0):  # -1 and 4294967295 may be one value
                return None
            return (fixed == c) is positive
        same = self._same(term)
        if same is not None:
            pair, positive = same
            fact = self.facts.get(pair)
            return None if fact is None else fact is positive
        return self.facts.get(term)

    def constrain(self, term: Term, truth: bool) -> None:
        """Constrain the path to a truth value of a condition."""
        self.constraints.append((term, truth))
        comparison = _equality(term)
        same = self._same(term) if comparison is None else None
        if same is not None:
            pair, positive = same
            self.facts[pair] = positive is truth
        elif comparison is None:
            self.facts[term] = truth
        else:
            a, c, positive = comparison
            if positive is truth:
                self.fixed[a] = c
                self._learn(a, c)
            else:
                self.unequal.add((a, c))

    def _same(self, term: Term) -> tuple[Term, bool] | None:
        """A comparison of two values that were read as (both of them, is it ``==``)."""
        match term:
            case ("x", ("==" | "!=") as op, a, b):
                positive = op == "=="
            case ("alu", ("setp.eq" | "setp.ne") as op, _, _, (a, b), k):
                positive = (op == "setp.eq") is (k == 0)
            case ("u", "!", a):
                inner = self._same(a)
                return None if inner is None else (inner[0], not inner[1])
            case _:
                return None
        left, right = self._moved(a), self._moved(b)
        if left[0] != "e" or right[0] != "e":
            return None
        return ("same", *sorted((left, right))), positive

    def _moved(self, term: Term) -> tuple[Any, ...]:
        """A read whose whole value a term merely hands on, or what else the term is."""
        while not isinstance(term, int):
            match term:
                case ("raw", size, a):
                    width = size
                case ("alu", "mov", type_name, _, (a,), 0) if type_name[0] in "ub":
                    width = type_size(type_name)
                case _:
                    return term
            if isinstance(a, int) or a[0] == "?" or (a[0] == "e" and not 0 < self.events[a[1][1]].size <= width):
                return term
            term = a
        return ("?",)


REGISTERS = Naming("registers that matter", rotated=True)
CONSTRAINTS = Naming("constraints on values that matter")
KNOWN_READS = Naming("values of reads that matter")
GROUPS = Naming("groups of asynchronous operations", rotated=True)
TRACKED_COPIES = Naming("copies that an arrive will track", rotated=True)
ISSUED = Naming("operations issued to the pipe", rotated=True)
COMPLETIONS = Naming("number of completions that no step has used yet")
TRACKED = Naming("number of tracked events that no step has used yet")
OF_PATHS = Unnamed("read where whole paths are followed; the protocol engine has its own")
ASKED_OF_EVENTS = Unnamed("numbers events, of which the window has those that matter")

declare_state(
    Groups,
    open=Attribute(SHALLOW, IN_OWNER),
    committed=Attribute(SHALLOW, IN_OWNER),
    covered_by_signal=Attribute(SHARED, IN_OWNER),
)
declare_state(
    State,
    registers=Attribute(SHALLOW, REGISTERS),
    pc=Attribute(SHARED, OF_PATHS),
    events=Attribute(SHALLOW, ASKED_OF_EVENTS),
    constraints=Attribute(SHALLOW, CONSTRAINTS),
    known=Attribute(SHALLOW, KNOWN_READS),
    unequal=Attribute(SHALLOW, WRITTEN_OUT),
    facts=Attribute(SHALLOW, WRITTEN_OUT),
    ctrl=Attribute(SHARED, OF_PATHS),
    visits=Attribute(SHALLOW, OF_PATHS),
    groups=Attribute(mapped(state("Groups")), GROUPS),
    cp_async=Attribute(SHALLOW, TRACKED_COPIES),
    piped=Attribute(SHALLOW, ISSUED),
    completes=Attribute(SHALLOW, COMPLETIONS),
    tracked=Attribute(SHALLOW, TRACKED),
    cluster_arrived=VALUE,
    order=Attribute(SHARED, ASKED_OF_EVENTS),
    instruction=Attribute(SHARED, ASKED_OF_EVENTS),
    effects=Attribute(SHARED, OF_PATHS),
    forked=VALUE,
    arrived=Attribute(SHARED, OF_PATHS),
    ended=VALUE,
    stuck=Attribute(SHARED, WRITTEN_OUT),
    misstep=Attribute(SHARED, WRITTEN_OUT),
    fixed=Attribute(SHALLOW, WRITTEN_OUT),
    idle=Attribute(SHARED, OF_PATHS),
    fences=Attribute(SHARED, ASKED_OF_EVENTS),
)


def _equality(term: Term) -> tuple[Term, int, bool] | None:
    """A condition as (term, constant, is it ``==``), if it is of that shape."""
    if isinstance(term, int):
        return None
    match term:
        case ("x", ("==" | "!=") as op, a, b):
            pass
        case ("alu", "setp.eq", _, _, (a, b), 0):
            op = "=="
        case ("alu", "setp.ne", _, _, (a, b), 0):
            op = "!="
        case ("alu", "setp.ne", _, _, (a, b), 1):
            op = "=="
        case ("u", "!", a):
            inner = _equality(a)
            return None if inner is None else (inner[0], inner[1], not inner[2])
        case ("e", _):
            return (term, 0, False)
        case _:
            return None
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and not isinstance(a, int):
        return (a, b, op == "==")
    return None
