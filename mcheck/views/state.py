"""The live events of an execution, what is kept of the relations between them, and what they share."""

from __future__ import annotations

from mcheck.algebra.tape import Tape
from mcheck.algebra.tapes import once_per_tape
from mcheck.errors import Unsupported
from mcheck.graph.event import Event
from mcheck.graph.relations import RELATIONS, STRONG, WIDTHS, event_of
from mcheck.graph.structure import Node, Structure
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.program.program import Program
from mcheck.views.compile import Compiled, compile_tape
from mcheck.views.entries import KEYS, Check, Entry, Masks, bits
from mcheck.views.kinds import ONE_WAY, STATIC, Shown
from mcheck.views.text import Known

NEVER = (0, 0)
NONE: frozenset[str] = frozenset()
PLACES = frozenset(("loc", "overlap", "vloc", "complete-overlap"))
"""Base relations of accesses to memory."""


class Pairs:
    """The sorts of events that a base relation of ``ONE_WAY`` relates."""

    def __init__(self, name: str) -> None:
        self.relation = RELATIONS[name]
        self.firsts: list[tuple[int, Node]] = []
        self.seconds: list[tuple[int, Node]] = []
        self.found: dict[int, tuple[list[int], list[int], int, int]] = {}
        """By sort, those that it is related from, those that it is related to, how many were asked of either."""

    def add(self, sort: int, node: Node) -> None:
        """Notes a sort of events, of which this is one."""
        if self.relation.first(event_of(node), node):
            self.firsts.append((sort, node))
        if self.relation.second(event_of(node), node):
            self.seconds.append((sort, node))

    def may(self, entry: Entry) -> bool:
        """Whether an event may be on either side."""
        event = event_of(entry.node)
        return self.relation.first(event, entry.node) or self.relation.second(event, entry.node)

    def of(self, w: State, entry: Entry) -> tuple[list[int], list[int]]:
        """The sorts of the events that an event may be related (from, to)."""
        event, node, sort = event_of(entry.node), entry.node, entry.sort
        first, second = self.relation.first(event, node), self.relation.second(event, node)
        into, out_of, of_firsts, of_seconds = self.found.get(sort) or ([], [], 0, 0)
        if of_firsts != len(self.firsts) or of_seconds != len(self.seconds):
            holds = self.relation.predicate
            if second:
                into += [k for k, other in self.firsts[of_firsts:] if holds(w.structure, other, node)]
            if first:
                out_of += [k for k, other in self.seconds[of_seconds:] if holds(w.structure, node, other)]
            self.found[sort] = into, out_of, len(self.firsts), len(self.seconds)
        return into, out_of


class State:
    """The live events of one execution under a model."""

    def __init__(self, program: Program, tape: Tape, shown: Shown | None = None) -> None:
        self.program = program
        self.tape = tape
        self.structure = Structure(program, ())
        self.checks = checks_of(tape)
        self.flags = tuple(c for c in self.checks if c.role == "flag")
        self.axioms = tuple(c for c in self.checks if c.role != "flag")
        self.co = next((n for n, i in enumerate(tape.code) if i.op == "base" and i.name == "co"), -1)
        nodes = [c.node for c in self.checks] + ([self.co] if self.co >= 0 else [])
        self.wanted = tuple(dict.fromkeys(nodes))
        self.shown = shown or Shown()
        self.entries: list[Entry | None] = []
        self.free: list[int] = []
        self.all = 0
        self.exact = 0
        self.count = 0
        self.cols: dict[int, list[int]] = {}
        self.filled: dict[int, int] = {}
        """Of which events a column is not empty."""
        self.masks: dict[int, int] = {}
        self.keyed: dict[str, Masks] = {k: Masks() for k in KEYS}
        self.sorts: dict[tuple[object, ...], int] = {}
        """What tells events apart for the base relations of ``ONE_WAY``, numbered."""
        self.pairs: dict[str, Pairs] = {name: Pairs(name) for name in ONE_WAY}
        self.alone: dict[int, frozenset[str]] = {}
        self.memo: dict[tuple[int, int], tuple[int, int]] = {}
        self.complete = True
        self.domains: dict[int, int] = {}
        self.missed = False
        """Whether an earlier event has entered the range of a relation, which is not followed."""
        self.settled = False
        self.compiled: Compiled = compiled_for(tape, self.shown, self.wanted)
        self._fit()

    def entry(
        self,
        event: Event,
        thread: int,
        *,
        edges: dict[str, int],
        back: dict[str, int] | None = None,
        exact: bool = False,
        where: int | None = None,
        instruction: object = None,
    ) -> Entry:
        """An entry for an event of a thread."""
        cta = self.program.threads[thread].place.cta.number if thread >= 0 else -1
        step = event.mbarrier
        place = where if where is not None or not event.size else None
        owner = (event.address - SHARED_BASE) // SHARED_WINDOW if "SHARED" in event.tags else -1
        sort = (
            cta, event.size > 0, event.tags, event.scope, event.spaces, event.covered, event.block, owner, place,
            None if step is None else (step.address, step.kind), event.order is None,
        )  # fmt: skip
        node = Node(-1, event, thread, event.address, event.size)
        number = self.sorts.get(sort)
        if number is None:
            number = self.sorts[sort] = len(self.sorts)
            for pairs in self.pairs.values() if thread >= 0 else ():
                pairs.add(number, node)
        names: set[str] = set(event.tags)
        if event.tags & STRONG and "CLUSTERBAR" not in event.tags:
            names.add("STRONG")
        names.update(name for name, scope in WIDTHS.items() if event.scope == scope)
        return Entry(node, thread, frozenset(names), exact, edges, back or {}, number, instruction)

    def _fit(self) -> None:
        size = len(self.entries)
        self.cols = {n: self.cols.get(n) or [0] * size for n in self.compiled.stored}
        self.masks = {n: self.masks.get(n, 0) for n in self.compiled.masks}
        self.domains = {n: self.domains.get(n, 0) for n in self.compiled.gathered}
        self.filled = {n: sum(1 << k for k, x in enumerate(c) if x) for n, c in self.cols.items()}
        self.memo = {}

    def _enter(self, entry: Entry, bit: int) -> None:
        """Puts the event where the relations look for it."""
        self.all |= bit
        if entry.exact:
            self.exact |= bit
        event = entry.node.source
        assert event is not None
        keyed = self.keyed
        keyed["thread"].add(entry.thread, bit)
        if entry.thread < 0:  # an initial write is in no thread
            keyed["memory"].add(None, bit)
            keyed["loc"].add(event.address, bit)
            return
        place = self.program.threads[entry.thread].place.cta
        keyed["cta"].add(place.number, bit)
        keyed["cluster"].add((place.gpu, place.cluster), bit)
        keyed["gpu"].add(place.gpu, bit)
        if event.scope is not None:
            keyed["scope"].add(event.scope, bit)
        keyed["block"].add(event.block, bit)
        keyed["instruction"].add((entry.thread, entry.instruction), bit)
        if event.mbarrier is not None:
            keyed["object"].add(event.mbarrier.address, bit)
        if event.size:
            keyed["memory"].add(None, bit)
            if entry.exact:
                keyed["loc"].add(event.address, bit)
                keyed["vloc"].add((event.address, event.virtual), bit)
                keyed["footprint"].add((event.address, event.size), bit)
            else:
                keyed["anywhere"].add(None, bit)
        keyed["sort"].add(entry.sort, bit)

    def _drop(self, keep: int) -> None:
        for masks in self.keyed.values():
            masks.drop(keep)
        self.exact &= keep

    def over(self, x: int, column: list[int], key: tuple[int, int]) -> int:
        """The union of a column over a set that, for a node and a thread (the ``key``), mostly grows."""
        known, result = self.memo.get(key, NEVER)
        if known & ~x:
            rest, result = x, 0
        else:
            rest = x & ~known
        while rest:
            low = rest & -rest
            result |= column[low.bit_length() - 1]
            rest ^= low
        self.memo[key] = x, result
        return result

    def closed(self, x: int, column: list[int], key: tuple[int, int]) -> int:
        """``over`` for a closure: what is in the column of a member need not be looked up."""
        known, result = self.memo.get(key, NEVER)
        rest = x
        if known & ~x:
            result = 0
        else:
            rest &= ~known
        while rest:
            k = rest.bit_length() - 1
            result |= column[k]
            rest &= ~(result | 1 << k)
        self.memo[key] = x, result
        return result

    def union(self, x: int, column: list[int], _key: tuple[int, int]) -> int:
        """The union of a column over a set."""
        result = 0
        while x:
            low = x & -x
            result |= column[low.bit_length() - 1]
            x ^= low
        return result

    def rows(self, x: int, column: list[int]) -> int:
        """The events that some member of a set is related to."""
        return sum(1 << k for k in bits(self.all) if column[k] & x) if x else 0

    def turn(self, n: int, targets: int, bit: int) -> None:
        """Notes edges that lead to earlier events."""
        column = self.cols[n]
        self.filled[n] |= targets
        for k in bits(targets):
            column[k] |= bit

    def static(self, name: str, entry: Entry, bit: int) -> tuple[int, int]:
        """A base relation that follows from what events are: (related to the new one, related from it)."""
        event = entry.node.source
        assert event is not None
        keyed = self.keyed
        both = 0
        if entry.thread < 0:
            both = self._of_initial(name, event) & ~bit
            return both | (bit if name in ("id", "loc", "overlap") else 0), both
        match name:
            case "loc" | "overlap" | "vloc" | "complete-overlap":  # PLACES
                if not event.size:
                    return 0, 0
                both = self._place(name, entry, event)
            case "int":
                both = keyed["thread"].get(entry.thread)
            case "ext":
                both = self.all & ~keyed["thread"].get(entry.thread)
                return both, both
            case "si":
                both = keyed["instruction"].get((entry.thread, entry.instruction))
            case "scta" | "scluster" | "sgpu":
                both = self._reach(entry, name[1:])
            case "sr":
                if event.scope is None:
                    return 0, 0
                inside = self._reach(entry, event.scope)
                for scope, members in keyed["scope"].of.items():
                    both |= inside & members & self._reach(entry, str(scope))
            case "sblock":
                both = keyed["block"].get(event.block)
            case "mbarrier-object":
                if event.mbarrier is None:
                    return 0, 0
                both = keyed["object"].get(event.mbarrier.address)
            case _:
                return self._one_way(name, entry, bit)
        both &= ~bit
        return both | bit, both

    def _of_initial(self, name: str, event: Event) -> int:
        """What an initial write shares with others: its location."""
        if name in ("loc", "overlap"):
            return self.keyed["loc"].get(event.address) | self.keyed["anywhere"].get(None)
        return self.all & ~self.keyed["thread"].get(-1) if name == "ext" else 0

    def _place(self, name: str, entry: Entry, event: Event) -> int:
        keyed = self.keyed
        anywhere = keyed["anywhere"].get(None)
        if name == "complete-overlap":
            if not self.complete:
                anywhere = 0
            if not entry.exact:
                return keyed["memory"].get(None) & ~keyed["thread"].get(-1) if self.complete else 0
            return keyed["footprint"].get((event.address, event.size)) | anywhere
        if not entry.exact:
            return keyed["memory"].get(None) & ~(keyed["thread"].get(-1) if name == "vloc" else 0)
        if name == "vloc":
            return keyed["vloc"].get((event.address, event.virtual)) | anywhere
        return keyed["loc"].get(event.address) | anywhere

    def _reach(self, entry: Entry, scope: str) -> int:
        place = self.program.threads[entry.thread].place.cta
        match scope:
            case "cta":
                return self.keyed["cta"].get(place.number)
            case "cluster":
                return self.keyed["cluster"].get((place.gpu, place.cluster))
            case "gpu":
                return self.keyed["gpu"].get(place.gpu)
        return self.all

    def _one_way(self, name: str, entry: Entry, bit: int) -> tuple[int, int]:
        into, out_of = self.pairs[name].of(self, entry)
        col = row = 0
        of = self.keyed["sort"].get
        for sort in into:
            col |= of(sort)
        for sort in out_of:
            row |= of(sort)
        return col & ~bit, row & ~bit

    def known(self, entry: Entry) -> Known:
        """What an event has in common with all of its kind."""
        alone = self.alone.get(entry.sort)
        if alone is None:
            alone = self.alone[entry.sort] = self._alone(entry)
        back = frozenset([n for n, mask in entry.back.items() if mask]) if entry.back else NONE
        return Known(entry.sets, frozenset([n for n, mask in entry.edges.items() if mask]), back, alone)

    def _alone(self, entry: Entry) -> frozenset[str]:
        """The base relations, of those that follow from what events are, that relate an event to nothing."""
        event = entry.node.source
        assert event is not None
        if entry.thread < 0:
            return STATIC - {"id", "loc", "overlap", "ext"}
        out = {name for name in ONE_WAY if not self.pairs[name].may(entry)}
        if not event.size:
            out |= PLACES
        if event.scope is None:
            out.add("sr")
        if event.mbarrier is None:
            out.add("mbarrier-object")
        return frozenset(out)

    def _is_in(self, k: int, name: str) -> bool:
        entry = self.entries[k]
        return entry is not None and (name == "_" or name in entry.sets)


_COMPILED: dict[tuple[int, Shown, tuple[int, ...]], tuple[Tape, Compiled]] = {}


def compiled_for(tape: Tape, shown: Shown, wanted: tuple[int, ...]) -> Compiled:
    """The compiled tape, once per process for what is shown."""
    key = id(tape), shown, wanted
    known = _COMPILED.get(key)
    if known is None or known[0] is not tape:
        if len(_COMPILED) > 256:
            _COMPILED.clear()
        known = _COMPILED[key] = tape, compile_tape(tape, shown, wanted)
    return known[1]


@once_per_tape
def checks_of(tape: Tape) -> tuple[Check, ...]:
    """The checks of a model; raises ``Unsupported`` for one that cannot be asked while an execution grows."""
    found: list[Check] = []
    for a in tape.axioms:
        if a.role == "flag":
            if a.test != "empty" or not a.negated:
                raise Unsupported(f"the flag {a.name} of the model is not of the form `flag ~empty`")
            found.append(Check(a.name, a.node, "empty", "flag"))
        elif a.negated:
            raise Unsupported(f"the axiom {a.name} of the model asks for something to be there")
        else:
            found.append(Check(a.name, a.node, a.test, a.role, a.monotone and a.test == "irreflexive"))
    return tuple(found)
