"""All executions of a small program by brute force: slow, and written to be read beside the definitions.

Nothing of the engine is used. Threads are run on concrete values, every read returning whatever any write may have left
there; reads-from, every coherence order and every order of fence.sc are then tried one after the other, and each
execution is put before the reference evaluator of cat. Loops, addresses in registers, shared memory and asynchronous
operations are not for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise, permutations, product

from mcheck.cat.ast import Base, Check, Empty, Let, LetRec, Model, Node, Op1, Op2, Var
from mcheck.ir import ops
from mcheck.ir.condition import And, Compare, Condition, ConstTerm, Formula, Not, Or, RegTerm, Term, Truth
from mcheck.ir.expr import Const
from mcheck.ir.program import Program
from tests.cat.reference import Reference
from tests.engines.explicit.runs import Access, Cell, TooMany, Trace, all_traces, arithmetic, fit, initial, unsigned

State = tuple[tuple[str, int], ...]
CHOSEN = ("rf", "sync_fence", "co")


@dataclass(frozen=True, slots=True)
class Result:
    """The final states, the names of the flags that some execution raises, and how many executions are consistent."""

    states: frozenset[State]
    flags: frozenset[str]
    executions: int


# --- executions ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the graph: a piece of an access (``thread`` -1: of the initial memory)."""

    number: int
    thread: int
    access: Access | None
    cell: Cell
    value: int


class Graph:
    """The events of one combination of traces, and the relations that need no choice."""

    def __init__(self, program: Program, traces: tuple[Trace, ...], wanted: list[Cell]) -> None:
        self.program = program
        self.cells = cut({(e.address, e.size) for t in traces for e in t.events if e.size})
        bare = {(a + k, 1) for a, n in wanted for k in range(n)}
        self.cells += sorted(b for b in bare if not any(a <= b[0] < a + n for a, n in self.cells))
        self.events: list[Event] = []
        for c in self.cells:
            self.add(-1, None, c, initial(program, *c))
        for thread, t in enumerate(traces):
            for e in t.events:
                if not e.size:
                    self.add(thread, e, (0, 0), 0)
                for address, size in self.cells:
                    if e.address <= address < e.address + e.size:
                        self.add(thread, e, (address, size), unsigned(size, e.value >> 8 * (address - e.address)))

    def add(self, thread: int, access: Access | None, cell: Cell, value: int) -> None:
        self.events.append(Event(len(self.events), thread, access, cell, value))

    def within(self, address: int, size: int) -> list[Cell]:
        """The cells that hold these bytes."""
        return sorted({c for c in self.cells if c[0] < address + size and address < c[0] + c[1]})

    def tags(self, e: Event) -> frozenset[str]:
        return frozenset({"IW", "W", "M"}) if e.access is None else e.access.tags

    def pairs(self, holds: Callable[[Event, Event, Access, Access], bool]) -> frozenset[tuple[int, int]]:
        """The pairs of events of threads for which something holds."""
        return frozenset(
            (a.number, b.number)
            for a in self.events
            for b in self.events
            if a.access is not None and b.access is not None and holds(a, b, a.access, b.access)
        )

    def inside(self, a: Event, b: Event, scope: str) -> bool:
        p, q = (self.program.threads[x.thread].place.cta for x in (a, b))
        if scope == "cta":
            return p.number == q.number
        if scope == "cluster":
            return p.gpu == q.gpu and p.cluster == q.cluster
        return scope == "sys" or p.gpu == q.gpu

    def base(self) -> dict[str, Iterable[object]]:
        found: dict[str, Iterable[object]] = dict.fromkeys(UNUSED, ())
        for tag in SETS:
            found[tag] = [e.number for e in self.events if tag in self.tags(e)]
        for tag in ("cta", "cluster", "gpu", "sys"):
            found[tag.upper()] = [e.number for e in self.events if e.access is not None and e.access.scope == tag]
        strong = {"RLX", "ACQ", "REL", "ACQ_REL", "SC"}
        found["STRONG"] = [e.number for e in self.events if self.tags(e) & strong]
        same = lambda a, b, x, y: a.thread == b.thread  # noqa: E731
        memory = [e for e in self.events if e.cell[1]]
        loc = frozenset((a.number, b.number) for a in memory for b in memory if a.cell == b.cell)
        found["loc"] = found["overlap"] = loc
        found["int"] = [(a.number, b.number) for a in self.events for b in self.events if a.thread == b.thread]
        found["ext"] = [(a.number, b.number) for a in self.events for b in self.events if a.thread != b.thread]
        found["po"] = self.pairs(lambda a, b, x, y: same(a, b, x, y) and x.place < y.place)
        found["si"] = self.pairs(lambda a, b, x, y: same(a, b, x, y) and x.instruction == y.instruction)
        found["same-access"] = self.pairs(lambda a, b, x, y: same(a, b, x, y) and x.key == y.key)
        found["vloc"] = self.pairs(
            lambda a, b, x, y: (
                (a.number, b.number) in loc and a.cell[0] - x.address + x.virtual == b.cell[0] - y.address + y.virtual
            )
        )
        found["complete-overlap"] = self.pairs(
            lambda a, b, x, y: bool(x.size) and (x.address, x.size) == (y.address, y.size)
        )
        found["rmw"] = found["amo"] = self.pairs(
            lambda a, b, x, y: same(a, b, x, y) and y.reader == x.key and a.cell == b.cell
        )
        for name in ("addr", "data", "ctrl"):
            found[name] = self.pairs(lambda a, b, x, y, n=name: same(a, b, x, y) and x.key in getattr(y, n))  # type: ignore[misc]
        found["sr"] = self.pairs(
            lambda a, b, x, y: (
                x.scope is not None
                and y.scope is not None
                and self.inside(a, b, x.scope)
                and self.inside(b, a, y.scope)
            )
        )
        for name in ("cta", "cluster", "gpu"):
            found["s" + name] = self.pairs(lambda a, b, x, y, n=name: self.inside(a, b, n))  # type: ignore[misc]
        found["sblock"] = found["scta"]
        found["covers"] = self.pairs(lambda a, b, x, y: "F" in x.tags and y.size > 0)
        return found


SETS = (
    *("R", "W", "M", "IW", "F", "B", "RMW", "ATOM", "RED", "WEAK", "RLX", "ACQ", "REL", "ACQ_REL", "SC"),
    *("GEN", "SUR", "TEX", "CON", "ALIAS", "MULTIMEM", "PROXYFENCE", "BOTH", "GLOBAL", "BARRIVE", "BWAIT"),
)
UNUSED = (
    *(
        "ASYNC",
        "TMAP",
        "SHARED",
        "ISSUE",
        "COMPLETE",
        "MBAR",
        "INIT",
        "ARRIVE",
        "EXPECT",
        "WAIT",
        "TRYWAIT",
        "INVAL",
        "SIGNAL",
    ),
    *(
        "INCREMENT",
        "ASYNCSIGNAL",
        "GROUPWAIT",
        "CPASYNC",
        "ASYNCREDUCTION",
        "WGMMA",
        "WGFENCE",
        "PIPE",
        "COMMIT",
        "NONCOHERENT",
        "GRIDWAIT",
        "EARLIER",
        "EXIT",
        "CLUSTERBAR",
    ),
    *("MBARRIER_INIT_FENCE", "RESTRICTED", "PRELEASE", "PACQUIRE", "lxsx", "syncbar", "barrier", "issue", "complete"),
    *(
        "phase",
        "regardless",
        "phase-order",
        "phase-fr",
        "object-access",
        "unborn",
        "START",
        "outlived",
        "mbarrier-object",
    ),
    *("exited", "rounds", "own-outlived", "MEET", "meet", "SIGNALLED"),
)
"""Base names that are empty for the programs that the oracle takes."""


def cut(ranges: set[Cell]) -> list[Cell]:
    """The largest pieces that no access splits."""
    cuts = sorted({a for a, _ in ranges} | {a + n for a, n in ranges})
    found = [(a, b - a) for a, b in pairwise(cuts)]
    return [c for c in found if any(a <= c[0] < a + n for a, n in ranges)]


def barriers(g: Graph, classic: bool) -> frozenset[tuple[int, int]] | None:
    """``syncbar`` or ``barrier``; ``None`` if some thread would wait forever."""
    at: dict[tuple[object, ...], list[Event]] = {}
    for e in g.events:
        if e.access is not None and e.access.barrier is not None:
            at.setdefault(e.access.barrier, []).append(e)
    pairs: set[tuple[int, int]] = set()
    for key, members in at.items():
        cta, instance, number = key
        reached = {e.access.barrier_op for e in members if e.access is not None}
        missing = {id(op) for op in static_barriers(g.program, cta, instance, number)} - reached
        if missing and (classic or any("BWAIT" in g.tags(e) for e in members)):
            return None
        if classic:
            pairs |= {
                (a.number, b.number) for a in members for b in members if b.access and "BARRIVE" not in b.access.tags
            }
            continue
        arrivals = {
            t: [e for e in members if e.thread == t and "BARRIVE" in g.tags(e)] for t in {e.thread for e in members}
        }
        waits: dict[int, dict[int, Event]] = {}
        for t, found in arrivals.items():
            for e in members:
                if e.thread == t and "BWAIT" in g.tags(e) and e.access is not None:
                    k = next(
                        k
                        for k, a in enumerate(found)
                        if a.access is not None and a.access.instruction == e.access.instruction
                    )
                    waits.setdefault(k, {})[t] = e
        for k, resumed in waits.items():
            pairs |= {
                (found[k].number, e.number) for found in arrivals.values() if k < len(found) for e in resumed.values()
            }
    return frozenset(pairs)


def static_barriers(program: Program, cta: object, instance: object, number: object) -> Iterator[ops.Barrier]:
    for t in program.threads:
        if t.place.cta.number == cta:
            for op in t.code:
                if isinstance(op, ops.Barrier) and op.instance == instance:
                    own = op.barrier.value if isinstance(op.barrier, Const) else None
                    if own == number or own is None or number is None:
                        yield op


@cache
def partial_orders(items: tuple[int, ...]) -> tuple[frozenset[tuple[int, int]], ...]:
    """All transitive, irreflexive relations on a few items."""
    found = []
    pairs = list(combinations(items, 2))
    for directions in product((0, 1, 2), repeat=len(pairs)):
        relation = {(a, b) if d == 1 else (b, a) for (a, b), d in zip(pairs, directions, strict=True) if d}
        if all((a, d) in relation for a, b in relation for c, d in relation if b == c):
            found.append(frozenset(relation))
    return tuple(found)


@cache
def total_orders(items: tuple[int, ...]) -> tuple[frozenset[tuple[int, int]], ...]:
    return tuple(frozenset(combinations(p, 2)) for p in permutations(items))


def acyclic_orientations(pairs: list[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
    for turned in product((False, True), repeat=len(pairs)):
        relation = frozenset((b, a) if t else (a, b) for (a, b), t in zip(pairs, turned, strict=True))
        reach = set(relation)
        while True:
            more = reach | {(a, d) for a, b in reach for c, d in reach if b == c}
            if more == reach:
                break
            reach = more
        if all(a != b for a, b in reach):
            yield relation


# --- models ------------------------------------------------------------------------------------------------


def names(node: Node) -> set[str | int]:
    """Base names and variables of an expression."""
    match node:
        case Base(name):
            return {name}
        case Var(uid):
            return {uid}
        case Empty():
            return set()
        case Op1(_, a):
            return names(a)
        case Op2(_, a, b):
            return names(a) | names(b)
    raise AssertionError(node)


@dataclass(frozen=True, slots=True)
class Staged:
    """The statements of a model by the first moment at which they can be evaluated: 0 before all choices, then after
    rf, after sync_fence, after co."""

    stages: tuple[tuple[Let | LetRec | Check, ...], ...]
    total: bool

    @staticmethod
    @cache
    def of(model: Model) -> Staged:
        stage: dict[str | int, int] = {name: k for k, name in enumerate(CHOSEN, 1)}
        stages: list[list[Let | LetRec | Check]] = [[], [], [], []]
        for s in model.statements:
            match s:
                case Let(var, body):
                    k = stage[var.uid] = max((stage.get(n, 0) for n in names(body)), default=0)
                case LetRec(bindings):
                    k = max((stage.get(n, 0) for b in bindings for n in names(b.body)), default=0)
                    for b in bindings:
                        stage[b.var.uid] = k
                case Check(_, _, body):
                    k = max((stage.get(n, 0) for n in names(body)), default=0)
            stages[k].append(s)
        return Staged(tuple(map(tuple, stages)), not demands_co(model))


def demands_co(model: Model) -> bool:
    """Whether the model itself says which writes co orders (``empty X \\ co``, ``empty X \\ (co | co^-1)``): then co is
    any partial order; a model that does not is read as herd does: co is total.
    """
    bound: dict[int, Node] = {s.var.uid: s.body for s in model.statements if isinstance(s, Let)}

    def unfold(node: Node) -> Node:
        while isinstance(node, Var) and node.uid in bound:
            node = bound[node.uid]
        if isinstance(node, Op1) and node.op == "+" and isinstance(unfold(node.arg), Base):
            return unfold(node.arg)
        return node

    def is_co(node: Node) -> bool:
        node = unfold(node)
        return isinstance(node, Base) and node.name == "co"

    def is_either(node: Node) -> bool:
        node = unfold(node)
        if not isinstance(node, Op2) or node.op != "|":
            return False
        inverse = lambda n: isinstance(n := unfold(n), Op1) and n.op == "^-1" and is_co(n.arg)  # noqa: E731
        return (is_co(node.left) and inverse(node.right)) or (inverse(node.left) and is_co(node.right))

    for s in model.statements:
        if isinstance(s, Check) and s.test == "empty" and not s.negated and not s.flag:
            body = unfold(s.body)
            if isinstance(body, Op2) and body.op == "\\" and (is_co(body.right) or is_either(body.right)):
                return True
    return False


def advance(reference: Reference, statements: Iterable[Let | LetRec | Check], flags: set[str]) -> bool:
    """Evaluates statements; whether all axioms among them hold. Flags that are raised are added."""
    for s in statements:
        match s:
            case Let(var, body):
                reference.values[var.uid] = reference.value(body)
            case LetRec():
                reference.fixpoint(s)
            case Check():
                if s.flag:
                    if reference.holds(s):
                        flags.add(s.name)
                elif not reference.holds(s):
                    return False
    return True


def extended(reference: Reference, **chosen: frozenset[tuple[int, int]]) -> Reference:
    result = Reference(reference.events, {**reference.base, **chosen})
    result.values = dict(reference.values)
    return result


def explore(program: Program, model: Model, *, limit: int = 20_000) -> Result:
    """All consistent executions; raises ``TooMany`` where there are too many to try."""
    classic = dict(model.options).get("semantics") in ("ptx-6.0", "ptx-7.5")
    staged = Staged.of(model)
    terms = terms_of(program.condition)
    wanted = [(t.address, t.size) for t in terms if not isinstance(t, RegTerm | ConstTerm)]
    states: set[State] = set()
    flags: set[str] = set()
    executions = tried = 0
    traces = all_traces(program, classic, limit)
    for combination in product(*traces):
        g = Graph(program, combination, wanted)
        sources = reads_from(g)
        if any(not options for options in sources):
            continue
        met = barriers(g, classic and program.dialect)
        if met is None:
            continue
        base = g.base()
        base["syncbar" if classic and program.dialect else "barrier"] = met
        start = Reference(range(len(g.events)), base)
        raised: set[str] = set()
        if not advance(start, staged.stages[0], raised):
            continue
        fences = [e.number for e in g.events if {"F", "SC"} <= g.tags(e)]
        sr = base["sr"]
        unordered = [p for p in combinations(fences, 2) if p in sr]  # type: ignore[operator]
        writes = {c: tuple(e.number for e in g.events if e.cell == c and "W" in g.tags(e)) for c in g.cells}
        orders = [
            [o | {(w[0], x) for x in w[1:]} for o in (total_orders if staged.total else partial_orders)(w[1:])]
            for w in writes.values()
        ]
        for rf in product(*sources):
            tried += 1
            if tried > limit:
                raise TooMany
            one = extended(start, rf=frozenset(rf))
            raised1 = set(raised)
            if not advance(one, staged.stages[1], raised1):
                continue
            for sf in acyclic_orientations(unordered):
                two = extended(one, sync_fence=sf)
                raised2 = set(raised1)
                if not advance(two, staged.stages[2], raised2):
                    continue
                for parts in product(*orders):
                    tried += 1
                    if tried > limit:
                        raise TooMany
                    co = frozenset(chain.from_iterable(parts))
                    three = extended(two, co=co)
                    raised3 = set(raised2)
                    if advance(three, staged.stages[3], raised3):
                        executions += 1
                        flags |= raised3
                        states |= final_states(g, combination, terms, writes, co)
    return Result(frozenset(states), frozenset(flags), executions)


def reads_from(g: Graph) -> list[list[tuple[int, int]]]:
    """For each read the pairs (write, read) that give it its value; never the write of its own read-modify-write."""
    out = []
    for r in g.events:
        if "R" in g.tags(r):
            out.append(
                [
                    (w.number, r.number)
                    for w in g.events
                    if "W" in g.tags(w)
                    and w.cell == r.cell
                    and w.value == r.value
                    and not (w.thread == r.thread and w.access and r.access and w.access.reader == r.access.key)
                ]
            )
    return out


def final_states(
    g: Graph,
    traces: tuple[Trace, ...],
    terms: list[Term],
    writes: dict[Cell, tuple[int, ...]],
    co: frozenset[tuple[int, int]],
) -> set[State]:
    """The values of the terms; of a location any write that none follows in co."""
    last = {c: [w for w in ws if not any((w, x) in co for x in ws)] for c, ws in writes.items()}
    asked = sorted({c for t in terms if not isinstance(t, RegTerm | ConstTerm) for c in g.within(t.address, t.size)})
    found = set()
    for choice in product(*(last[c] for c in asked)):
        chosen = dict(zip(asked, choice, strict=True))
        state = []
        for t in terms:
            if isinstance(t, RegTerm):
                state.append((t.label, traces[t.thread].registers.get(t.reg, 0)))
            elif not isinstance(t, ConstTerm):
                cells = g.within(t.address, t.size)
                value = sum(g.events[chosen[c]].value << 8 * (c[0] - cells[0][0]) for c in cells)
                value = unsigned(t.size, value >> 8 * (t.address - cells[0][0]))
                state.append((t.label, fit(t.type, value)))
        found.add(tuple(state))
    return found


# --- conditions ---------------------------------------------------------------------------------------------


def terms_of(condition: Condition) -> list[Term]:
    """What a state shows, each term once, in the order of the text."""
    found: list[Term] = []

    def walk(f: Formula) -> None:
        match f:
            case Compare(_, left, right):
                found.extend((left, right))
            case And(parts) | Or(parts):
                for p in parts:
                    walk(p)
            case Not(part):
                walk(part)

    walk(condition.formula)
    walk(condition.filter)
    found.extend(condition.locations)
    return [t for t in dict.fromkeys(found) if not isinstance(t, ConstTerm)]


def holds(formula: Formula, state: State) -> bool:
    match formula:
        case Truth(value):
            return value
        case Not(part):
            return not holds(part, state)
        case And(parts):
            return all(holds(p, state) for p in parts)
        case Or(parts):
            return any(holds(p, state) for p in parts)
        case Compare(op, left, right):
            values = dict(state)
            a, b = (t.value if isinstance(t, ConstTerm) else values[t.label] for t in (left, right))
            return bool(arithmetic(op, a, b))
    raise AssertionError(formula)


def verdict(condition: Condition, states: Iterable[State]) -> str:
    """pass or fail, where nothing is undefined."""
    within = [holds(condition.formula, s) for s in states if holds(condition.filter, s)]
    passes = {"exists": any(within), "~exists": not any(within), "forall": all(within), "none": True}
    return "pass" if passes[condition.kind] else "fail"
