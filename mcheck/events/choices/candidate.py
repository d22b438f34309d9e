"""Candidate executions as choices on an event structure: rf, the last write of each location, mbarrier phases,
barriers.

A choice has options; an option contributes pairs to base relations, forbids co edges, and may fix the results of events
(the predicate of a wait, the state of an arrive).
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.ir.ops import Collective
from mcheck.semantics.lane_terms import returned
from mcheck.semantics.terms import Term, Uid, Unknown, depends_on_unknown, evaluate, reads_of

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Option:
    """``edges``: (base relation, pairs). ``not_co``: co pairs that it rules out. ``results``: what events return.

    ``misstep`` is undefined behaviour (code, message, event) that ends what the option describes; ``remarks`` are
    findings that do not. ``phases`` tells, for reports, the phase in which each operation on an mbarrier counts.
    ``beliefs`` are what waits suppose their states to be: see ``mcheck.events.choices.mbarrier_tokens``."""

    edges: tuple[tuple[str, tuple[Pair, ...]], ...] = ()
    not_co: tuple[Pair, ...] = ()
    source: int = -1
    results: tuple[tuple[Uid, int], ...] = ()
    misstep: tuple[str, str | Phrase, Uid] | None = None
    remarks: tuple[tuple[str, str | Phrase, Uid], ...] = ()
    phases: tuple[tuple[Uid, int], ...] = ()
    beliefs: tuple[tuple[Uid, int | frozenset[int]], ...] = ()


@dataclass(slots=True)
class Choice:
    """``kind``: rf, final, phase or barrier; ``node`` the read of an rf choice, ``address`` the chunk of a final
    one.
    """

    kind: str
    options: list[Option]
    node: int = -1
    address: int = 0
    rank: int = 0

    @property
    def inevitable(self) -> bool:
        """Whether every option is undefined, as where no operation makes an mbarrier valid."""
        return all(option.misstep is not None for option in self.options)


Candidate = tuple[int, ...]
"""The option taken by each choice, in the order of the choices; -1 where none is taken yet."""


class Undetermined(Exception):
    """Raised if a value depends on a choice that has not been made."""


class CircularValue(Exception):
    """Raised if a value depends on itself (out of thin air)."""


def read_choices(s: Structure, stuck: frozenset[Uid]) -> list[Choice]:
    """The rf choices: any write of the read's chunk except the one of its own read-modify-write."""
    out = []
    for address, reads in s.reads.items():
        writes = s.writes[address]
        # a failing compare-and-swap that stores the old value back changes nothing that a waiting thread could see
        own = {x: (write := s.nodes[x].source) is not None and write.uid in stuck for x in writes}
        for r in reads:
            source = s.nodes[r].source
            assert source is not None
            options = []
            for w in writes:
                write = s.nodes[w].source
                if write is not None and write.rmw == source.uid:
                    continue
                not_co = tuple((w, x) for x in writes if x != w and not own[x]) if source.uid in stuck else ()
                options.append(Option((("rf", ((w, r),)),), not_co, w))
            strong = 0 if source.tags & {Tag.ACQ} else 1 if Tag.RLX in source.tags else 2
            out.append(Choice("rf", options, node=r, rank=10 + strong))
    return out


def final_choices(s: Structure, addresses: list[int]) -> list[Choice]:
    """The choices of the last write of each chunk: one that no other write follows in co."""
    return [
        Choice(
            "final",
            [Option(not_co=tuple((w, x) for x in s.writes[a] if x != w), source=w) for w in s.writes[a]],
            address=a,
            rank=20,
        )
        for a in addresses
    ]


@dataclass(slots=True)
class Valuation:
    """What events return in a candidate."""

    structure: Structure
    choices: list[Choice]
    candidate: Candidate
    reader: dict[int, int]  # node of a read -> its choice
    results: dict[Uid, list[int]]  # event -> the choices that may fix its result
    cache: dict[Uid, int] = field(default_factory=dict)
    open: set[Uid] = field(default_factory=set)
    parts: dict[tuple[Uid, int, int], int] = field(default_factory=dict)
    busy: set[tuple[Uid, int, int]] = field(default_factory=set)

    def of(self, uid: Uid) -> int:
        """The raw result of an event; raises ``Undetermined``, ``Unknown`` or ``CircularValue``."""
        found = self.cache.get(uid)
        if found is not None:
            return found
        if uid in self.open:
            raise CircularValue
        self.open.add(uid)
        try:
            value = self._compute(uid)
        finally:
            self.open.discard(uid)
        self.cache[uid] = value
        return value

    def _compute(self, uid: Uid) -> int:
        s = self.structure
        event = s.events[uid]
        if not event.size:
            for c in self.results.get(uid, ()):
                taken = self.candidate[c]
                if taken < 0:
                    raise Undetermined
                for u, value in self.choices[c].options[taken].results:
                    if u == uid:
                        return value
            if event.barrier is not None:
                return self._reduction(event)
            raise Undetermined
        return self.bytes_read(uid, 0, event.size)

    def bytes_read(self, uid: Uid, offset: int, size: int) -> int:
        """Some bytes of what a read returned: only the writes of those bytes matter."""
        s = self.structure
        result = 0
        for n in s.nodes_of[uid]:
            node = s.nodes[n]
            start, end = max(node.offset, offset), min(node.offset + node.size, offset + size)
            if start < end:
                part = self.written(self.source(n), start - node.offset, end - start)
                result |= part << (8 * (start - offset))
        return result

    def written(self, node: int, offset: int, size: int) -> int:
        """Some bytes of what a write node writes."""
        w = self.structure.nodes[node]
        if w.source is None:
            return self.part(w.initial, offset, size)
        return self.part(w.source.value, w.offset + offset, size)

    def part(self, term: Term, offset: int, size: int) -> int:
        """Some bytes of a term's value."""
        if not isinstance(term, int):
            if term[0] == "e" and self.structure.events[term[1]].size:
                key = (term[1], offset, size)
                found = self.parts.get(key)
                if found is None:
                    if key in self.busy:
                        raise CircularValue
                    self.busy.add(key)
                    try:
                        found = self.parts[key] = self.bytes_read(term[1], offset, size)
                    finally:
                        self.busy.discard(key)
                return found
            if term[0] == "slice":
                return self.part(term[1], term[2] + offset, size)
            if term[0] == "cat":
                result = start = 0
                for inner, width in term[1]:
                    low, high = max(start, offset), min(start + width, offset + size)
                    if low < high:
                        result |= self.part(inner, low - start, high - low) << (8 * (low - offset))
                    start += width
                return result
        return (self.term(term) >> (8 * offset)) & ((1 << (8 * size)) - 1)

    def _reduction(self, event: Event) -> int:
        """The result of bar.red: the predicates of all arrivals of its generation, counted or combined (PTX ISA
        9.7.13.1).
        """
        here = self.structure.nodes_of[event.uid][0]
        if isinstance(event.op, Collective):
            return self._collective(event, event.op, here)
        predicates = []
        for k, choice in enumerate(self.choices):
            if choice.kind == "barrier":
                if self.candidate[k] < 0:
                    raise Undetermined
                for _, pairs in choice.options[self.candidate[k]].edges:
                    predicates += [bool(self.write(a)) for a, b in pairs if b == here]
        match getattr(event.op, "red_op", None):
            case "popc":
                return sum(predicates)
            case "and":
                return int(all(predicates))
            case "or":
                return int(any(predicates))
        raise Unknown

    def _collective(self, event: Event, op: Collective, here: int) -> int:
        """The result of a lane that has synchronised with the others of a mask."""
        brought: dict[int, int] = {}
        for k, choice in enumerate(self.choices):
            if choice.kind == "barrier":
                if self.candidate[k] < 0:
                    raise Undetermined
                for relation, pairs in choice.options[self.candidate[k]].edges:
                    for a, b in pairs if relation == "meet" else ():
                        if b == here:
                            brought[self.structure.thread(self.structure.nodes[a]).place.lane] = self.write(a)
        assert event.barrier is not None
        mask = event.barrier.key[3]
        assert isinstance(mask, int)
        lane = self.structure.program.threads[event.uid[0]].place.lane
        found = returned(op, mask, lane, brought, self.write(here))
        if found is None:
            raise Unknown
        return found

    def source(self, read: int) -> int:
        """The write that a read node reads from."""
        c = self.reader[read]
        taken = self.candidate[c]
        if taken < 0:
            raise Undetermined
        return self.choices[c].options[taken].source

    def write(self, node: int) -> int:
        """The value of a write node."""
        w = self.structure.nodes[node]
        return self.written(node, 0, w.size) if w.size else self.term(w.value)

    def term(self, term: Term) -> int:
        """The value of a term."""
        return evaluate(term, self.of, self.part)


def constant_values(s: Structure, choice: Choice) -> list[int | None] | None:
    """For an rf choice, the value of each option, ``None`` if not known in advance."""
    if choice.kind not in ("rf", "final"):
        return None
    out: list[int | None] = []
    for o in choice.options:
        value = s.nodes[o.source].value
        out.append(value if isinstance(value, int) else None)
    return out


def single_event(term: Term) -> Uid | None:
    """The only event that a term depends on, if there is one and no unknown constant."""
    uids = reads_of(term)
    return next(iter(uids)) if len(uids) == 1 and not depends_on_unknown(term) else None
