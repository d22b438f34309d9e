"""Live events of an execution, the stored columns of the model's relations, and the indexes over both."""

from __future__ import annotations

from mcheck.base.errors import Unsupported
from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Tape, dependencies
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental import object_order as ahead
from mcheck.engines.protocol.incremental import overwritten
from mcheck.engines.protocol.incremental.compilation import Compiled, compile_tape
from mcheck.engines.protocol.incremental.entries import KEYS, LARGE, Check, Entry, Masks, bits, union
from mcheck.engines.protocol.incremental.generated_code import Known
from mcheck.engines.protocol.incremental.history import Histories
from mcheck.engines.protocol.incremental.kinds import Shown
from mcheck.engines.protocol.incremental.sorts import NO_CLASS, Sorts
from mcheck.events.event import Event
from mcheck.ir.program import Program

Gathered = tuple[int, int]
"""A set of events, and a union over it."""
NEVER: Gathered = (0, 0)
MAX_EQUAL = 1024
"""Number of sets of late events that are known, and so many of earlier ones."""
MAX_UNIONS = 256
"""Number of unions over the columns of closures that are remembered."""


class State:
    """The live events of one execution under a model."""

    def __init__(self, program: Program, tape: Tape, shown: Shown | None = None, sorts: Sorts | None = None) -> None:
        self.program = program
        self.tape = tape
        self.checks = checks_of(tape)
        self.flags = tuple(c for c in self.checks if c.role == "flag")
        self.axioms = tuple(c for c in self.checks if c.role != "flag")
        self.co = next((n for n, i in enumerate(tape.code) if i.op == "base" and i.name == "co"), -1)
        self.bounds = bounds_of(tape)
        nodes = [c.node for c in self.checks] + ([self.co] if self.co >= 0 else [])
        self.before_reads = overwritten.overwriting_relations(tape)
        asked = *ahead.needed_nodes(tape), *self.before_reads
        self.wanted = tuple(dict.fromkeys([*nodes, *asked]))
        circles = frozenset(c.node for c in self.axioms if c.test == "irreflexive")
        self.flagged = frozenset(c.node for c in self.flags).difference(c.node for c in self.axioms) - {self.co, *asked}
        """What is computed for flags alone."""
        self.circles = circles - {self.co, *asked}
        """Those of them of which nothing is asked but whether they lead from an event to itself."""
        self.relations: dict[int, tuple[int, int]] = {}
        """What of the event that was added last is wanted, by node."""
        self.newest: Entry | None = None
        self.shown = shown or Shown()
        self.entries: list[Entry | None] = []
        self.free: list[int] = []
        self.all = 0
        self.exact = 0
        self.count = 0
        self.cols: dict[int, list[int]] = {}
        self.last_columns: list[int] = [0] * len(tape.code)
        """By node, the column of the event that was added last, if it has one."""
        self.filled: dict[int, int] = {}
        """Of which events a column is not empty."""
        self.masks: dict[int, int] = {}
        self.keyed: dict[str, Masks] = {k: Masks() for k in KEYS}
        self.instructions: dict[object, tuple[int, ...]] = {}
        """The slots of the live events of each thread and instruction: they are few, and a mask is as wide as all."""
        self.equal: dict[int, int] = {}
        self.equal_before: dict[int, int] = {}
        """Sets that late events have, each once (``one_of_equal``)."""
        self.sorts = sorts or Sorts(program)
        """Shared by all executions of the program."""
        self.ends = Masks()
        """The live events of the ``others`` of each class of sorts."""
        self.class_count = len(self.sorts.classes.parent)
        """The number of classes that ``ends`` takes into account."""
        self.latest: dict[int, tuple[int, int]] = {}
        """By node, a set that its column was joined over, and what came out: threads that leave a barrier come after
        the same events, and some of their own.
        """
        self.recent: dict[tuple[int, int], int] = {}
        """By node and set, the union over the columns of a closure: all who arrive in one phase come after the same."""
        self.memo: dict[int, Gathered] = {}
        """By thread and union (``Compiled.unions``), the latest one: see ``union_growing``."""
        self.complete = True
        self.meets = 0
        """Events that have bytes in common with the one that is looked at, whatever their addresses say."""
        self.domains: dict[int, int] = {}
        self.missed = False
        """Whether an earlier event has entered the range of a relation, which is not followed."""
        self.has_merged = False
        self.turned: list[tuple[int, int]] | None = None
        """The edges that lead to earlier events, by node and targets, while they are recorded."""
        self.histories: Histories | None = None
        """Where the histories of this window and others are numbered, if they are."""
        self.past = 0
        """The number of its history."""
        self.compiled: Compiled = compiled_for(tape, self.shown, self.wanted, self.circles)
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
        """Return an entry for an event of a thread."""
        sorts = self.sorts
        for name, sources in edges.items():
            if sources.bit_length() > LARGE and name != "po":  # what a thread has done no other event comes after
                edges[name] = self.one_of_equal(sources)
        sort = sorts.sort_of(event, thread, where)
        if self.class_count < len(sorts.classes.parent):
            self._extend()
        return Entry(event, thread, sorts.names[sort], exact, edges, back or {}, sort, instruction)

    def one_of_equal(self, events: int) -> int:
        """Return the set itself or an equal one that a late event has, so that it takes memory once: all who arrive in
        one phase come after the same operations, and the parts of a copy have one issue.
        """
        found = self.equal.get(events)
        if found is None:
            if len(self.equal) >= MAX_EQUAL:
                self.equal, self.equal_before = {}, self.equal
            found = self.equal[events] = self.equal_before.get(events, events)
        return found

    def _extend(self) -> None:
        """Extend the indexes by new classes of sorts; a class that was split off starts with the same events."""
        classes, of = self.sorts.classes, self.keyed["sort"].get
        for k in range(self.class_count, len(classes.parent)):
            parent = classes.parent[k]
            self.ends.put(k, self.ends.get(parent) if parent >= 0 else union(map(of, classes.others[k])))
        self.class_count = len(classes.parent)

    def _fit(self) -> None:
        size = len(self.entries)
        self.cols = {n: self.cols.get(n) or [0] * size for n in self.compiled.stored}
        self.masks = {n: self.masks.get(n, 0) for n in self.compiled.masks}
        self.domains = {n: self.domains.get(n, 0) for n in self.compiled.gathered}
        self.filled = {n: self.filled.get(n, 0) for n in self.compiled.stored}
        self.memo = {}
        self.latest, self.recent = {}, {}

    def _enter(self, entry: Entry, bit: int) -> None:
        """Add the event to the indexes that the relations use."""
        self.all |= bit
        if entry.exact:
            self.exact |= bit
        event = entry.event
        keyed, slot = self.keyed, entry.slot
        if entry.thread < 0:  # an initial write is in no thread
            keyed["thread"].add(entry.thread, slot)
            keyed["memory"].add(None, slot)
            keyed["loc"].add(event.address, slot)
            return
        for kind, key in self.sorts.places_of(entry.sort, entry.thread, event):
            keyed[kind].add(key, slot)
        here = entry.thread, entry.instruction
        self.instructions[here] = (*self.instructions.get(here, ()), slot)
        if entry.exact:
            keyed["loc"].add(event.address, slot)
            keyed["vloc"].add((event.address, event.virtual), slot)
            keyed["footprint"].add((event.address, event.size), slot)
        elif event.size:
            keyed["anywhere"].add(None, slot)
        for k in self.sorts.classes.of_other.get(entry.sort, ()):
            self.ends.add(k, slot)

    def _drop(self, keep: int) -> None:
        for masks in self.keyed.values():
            masks.drop(keep)
        self.instructions = {
            key: left for key, slots in self.instructions.items() if (left := tuple(k for k in slots if keep >> k & 1))
        }
        self.equal, self.equal_before = {}, {}
        self.ends.drop(keep)
        self.exact &= keep

    def union_growing(self, x: int, column: list[int], node: int, key: int, before: Gathered) -> int:
        """Return the union of a column over a set that grows along a thread.

        ``before`` is the set and result of the last call with this ``key``, a node and a thread.
        """
        rest, result = _grown(x, before)
        if rest:
            result = _with(result, self._shared(rest, column, node))
            self.memo[key] = x, result
        return result

    def union_inside(self, x: int, column: list[int], scope: str, key: int, before: Gathered) -> int:
        """``union_growing``, where of the column of an event the events of its own ``scope`` count."""
        rest, result = _grown(x, before)
        if rest:
            more = 0
            for k in bits(rest):
                entry = self.entries[k]
                assert entry is not None
                more |= column[k] & self._reach(entry, scope)
            result = _with(result, more)
            self.memo[key] = x, result
        return result

    def union_chained(
        self, x: int, column: list[int], own: list[int], past: list[int], key: int, before: Gathered
    ) -> int:  # fmt: skip
        """``union_growing``, where ``own`` holds the union over the ``past`` of every event.

        The past of a member of ``x`` is part of ``x``, so that it need not be visited.
        """
        rest, result = _grown(x, before)
        if rest:
            more = 0
            while rest:
                k = rest.bit_length() - 1
                more |= own[k] | column[k]
                rest ^= 1 << k
                if rest:
                    rest ^= rest & past[k]
            result = _with(result, more)
            self.memo[key] = x, result
        return result

    def union_closure(self, x: int, column: list[int], node: int, key: int, before: Gathered) -> int:
        """``union_growing`` for a closure: the column of a member need not be visited."""
        rest, result = _grown(x, before)
        if rest:
            k = rest.bit_length() - 1
            if rest ^ 1 << k:
                asked = node, rest
                found = self.recent.get(asked)
                if found is None:
                    if len(self.recent) > MAX_UNIONS:
                        self.recent.clear()
                    found = self.recent[asked] = _united(rest, column)
            else:
                found = column[k]
            result = _with(result, found)
            self.memo[key] = x, result
        return result

    def _shared(self, x: int, column: list[int], node: int) -> int:
        """Return the union of a column over a set, most of which the previous set may have contained."""
        if not x & (x - 1):
            return column[x.bit_length() - 1]
        core, found = self.latest.get(node, NEVER)
        common = core & x
        half = x.bit_count() // 2
        if common != core or common.bit_count() < half:
            core = common if common.bit_count() >= half else x
            found = self.union(core, column)
            self.latest[node] = core, found
        return found | self.union(x ^ core, column) if x != core else found

    def union(self, x: int, column: list[int]) -> int:
        """Return the union of a column over a set."""
        result = 0
        while x:  # from the top: sets are long, and to make one negative costs as much as five steps
            k = x.bit_length() - 1
            result |= column[k]
            x ^= 1 << k
        return result

    def rows(self, x: int, column: list[int]) -> int:
        """Return the events that some member of a set is related to."""
        if not x:
            return 0
        return int("".join(["1" if c & x else "0" for c in reversed(column)]), 2) & self.all  # linear in the events

    def all_after(self, x: int, column: list[int]) -> int:
        """Return a set and all that comes after its members in a closure."""
        return x | self.rows(x, column)

    def relates_anew(self, before: int, after: int, column: list[int]) -> bool:
        """Whether a closure lacks a pair of a member of one set and one of another."""
        return any(before & (before ^ column[k]) for k in bits(after))

    def add_edges(self, n: int, targets: int, bit: int) -> None:
        """Add edges that lead to earlier events."""
        if self.turned is not None:
            self.turned.append((n, targets))
        self.latest.clear()
        self.recent.clear()
        column = self.cols[n]
        self.filled[n] |= targets
        for k in bits(targets):
            column[k] |= bit

    def static(self, name: str, entry: Entry, bit: int) -> tuple[int, int]:
        """Evaluate a base relation that follows from the events alone: (related to the new one, related from it)."""
        event = entry.event
        keyed = self.keyed
        both = 0
        if entry.thread < 0:
            both = self._initial_locations(name, event) & ~bit
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
                both = sum(1 << k for k in self.instructions.get((entry.thread, entry.instruction), ()))
            case "scta" | "scluster" | "sgpu":
                both = self._reach(entry, name[1:])
            case "sr":
                if event.scope is None:
                    return 0, 0
                inside = self._reach(entry, event.scope)
                for scope, members in keyed["scope"].by_key.items():
                    both |= inside & members & self._reach(entry, str(scope))
            case "sblock":
                both = keyed["block"].get(event.block)
            case "mbarrier-object":
                if event.mbarrier is None:
                    return 0, 0
                both = keyed["object"].get(event.mbarrier.address)
            case _:
                return self.one_way(name, entry, bit)
        return (both, both ^ bit) if both & bit else (both | bit, both)

    def _initial_locations(self, name: str, event: Event) -> int:
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
                return self._of_threads(keyed["memory"].get(None)) if self.complete else 0
            return keyed["footprint"].get((event.address, event.size)) | anywhere
        if not entry.exact:
            if name != "vloc":
                return keyed["memory"].get(None)
            return self._of_threads(self._by_one_address(keyed["memory"].get(None), event))
        if name == "vloc":
            alike = self._by_one_address(anywhere | self.meets, event)
            return keyed["vloc"].get((event.address, event.virtual)) | alike
        return keyed["loc"].get(event.address) | anywhere | self.meets

    def _by_one_address(self, events: int, event: Event) -> int:
        """Of accesses to the same bytes, those by the same address: a byte has its own, and at most one of several
        copies (PTX ISA 8.2.3).
        """
        displaced = self.keyed["displaced"].get(None)
        return events & displaced if Tag.MULTIMEM in event.tags else events & ~displaced

    def _of_threads(self, events: int) -> int:
        """Return events without the initial writes."""
        initial = events & self.keyed["thread"].get(-1)
        return events ^ initial if initial else events

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

    def one_way(self, name: str, entry: Entry, bit: int) -> tuple[int, int]:
        """``static`` for a relation of ``ONE_WAY``."""
        pairs, ends = self.sorts.pairs[name], self.ends.get
        behind, ahead = pairs.behind.of.get(entry.sort, NO_CLASS), pairs.ahead.of.get(entry.sort, NO_CLASS)
        col, row = ends(behind), ends(ahead)
        return col ^ bit if col & bit else col, row ^ bit if row & bit else row

    def known(self, entry: Entry) -> Known:
        """Return what an event has in common with all of its kind."""
        edges = tuple([n for n, mask in entry.edges.items() if mask])
        back = tuple([n for n, mask in entry.back.items() if mask]) if entry.back else ()
        key = entry.sort, edges, back
        found = self.sorts.knowns.get(key)
        if found is None:
            alone = self.sorts.alone[entry.sort]
            found = self.sorts.knowns[key] = Known(entry.sets, frozenset(edges), frozenset(back), alone)
        return found

    def _is_in(self, k: int, name: str) -> bool:
        entry = self.entries[k]
        return entry is not None and (name == "_" or name in entry.sets)


def _grown(x: int, before: Gathered) -> Gathered:
    """What a set has that the set of ``before`` lacks, and the union over that one; all and nothing if it lost some."""
    known, result = before
    rest = x ^ known
    return (x, 0) if rest & known else (rest, result)


def _with(all_: int, more: int) -> int:
    """Return the union; the first set itself if the second adds nothing, so that equal sets are one object."""
    if not all_:
        return more
    out = all_ | more
    return all_ if out == all_ else out


def _united(x: int, column: list[int]) -> int:
    """Return the union of the column of a closure over a set; the column of a member need not be visited."""
    result = 0
    while x:
        k = x.bit_length() - 1
        result |= column[k]
        x ^= 1 << k
        if x:
            x ^= x & result
    return result


CompiledTapes = dict[tuple[int, Shown, tuple[int, ...], frozenset[int]], tuple[Tape, Compiled]]
"""By the identity of a tape and the other arguments of ``compile_tape``, the tape and what it is compiled to."""
_COMPILED: CompiledTapes = {}
MAX_COMPILED = 1024
"""Number of compiled tapes that are cached; the oldest is evicted."""


def compiled_for(tape: Tape, shown: Shown, wanted: tuple[int, ...], circles: frozenset[int]) -> Compiled:
    """Return the compiled tape, cached per process."""
    key = id(tape), shown, wanted, circles
    known = _COMPILED.get(key)
    if known is None or known[0] is not tape:
        while len(_COMPILED) >= MAX_COMPILED:
            del _COMPILED[next(iter(_COMPILED))]
        known = _COMPILED[key] = tape, compile_tape(tape, shown, wanted, circles)
    return known[1]


def compiled_tapes() -> CompiledTapes:
    """Return the compiled tapes of this process."""
    return _COMPILED


@once_per_tape
def bounds_of(tape: Tape) -> tuple[int, ...]:
    """Return the relations whose pairs coherence must contain, and that do not depend on coherence."""
    return tuple(c.node for c in checks_of(tape) if c.role == "bound" and "co" not in dependencies(tape, c.node))


@once_per_tape
def checks_of(tape: Tape) -> tuple[Check, ...]:
    """Return the checks of a model; raise ``Unsupported`` for one that cannot be evaluated incrementally."""
    found: list[Check] = []
    for a in tape.checks:
        if a.role == "flag":
            if a.test != "empty" or not a.negated:
                raise Unsupported(f"the flag {a.name} of the model is not of the form `flag ~empty`")
            found.append(Check(a.name, a.node, "empty", "flag"))
        elif a.negated:
            raise Unsupported(f"the axiom {a.name} of the model requires a relation to be nonempty")
        else:
            found.append(Check(a.name, a.node, a.test, a.role, a.monotone and a.test == "irreflexive"))
    return tuple(found)
