"""Why a pair is in a relation: the cheapest chain of base relations that puts it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.shortest_paths import cheapest
from mcheck.cat.algebra.tape import Tape, TapeCheck

if TYPE_CHECKING:
    import networkx as nx

COSTS = {
    "rf": 2,
    "co": 2,
    "phase": 2,
    "complete": 2,
    "barrier": 2,
    "meet": 2,
    "syncbar": 2,
    "issue": 2,
    "rmw": 2,
    "sync_fence": 2,
    "po": 3,
}
COSTS |= {"phase-order": 3, "phase-fr": 3, "data": 3, "addr": 3, "ctrl": 3, "same-access": 5}
FILTER = 40
"""The cost of a base relation that tells no step of an execution: scopes, locations, products; against program order
leads no step either.
"""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """A pair of a base relation."""

    source: int
    target: int
    kind: str


Path = tuple[int, tuple[Step, ...]]

WITHIN = frozenset(("rmw", "rmw^-1", "same-access", "same-access^-1"))
"""Steps between parts of one instruction, which show as one."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The axiom that fails and the edges that show it: a cycle, or the members of a forbidden pattern.

    ``place`` is that of the axiom in its model.
    """

    axiom: str
    steps: tuple[Step, ...]
    cost: int
    place: int = 0

    @classmethod
    def of(cls, axiom: str, steps: tuple[Step, ...], cost: int, place: int = 0) -> Violation:
        """The violation with steps that make one communication ``join_steps``."""
        return cls(axiom, join_steps(steps), cost, place)

    @property
    def closed(self) -> bool:
        """Whether the steps are a cycle."""
        ends = zip(self.steps, (*self.steps[1:], *self.steps[:1]), strict=True)
        return bool(self.steps) and all(a.target == b.source for a, b in ends)

    @property
    def length(self) -> int:
        """Steps from one instruction to another."""
        return sum(s.kind not in WITHIN for s in self.steps)

    @property
    def rank(self) -> tuple[bool, bool, int, int, int, tuple[Step, ...]]:
        """Violations by how much they tell: a cycle before all others, of steps of an execution, the shortest first; of
        axioms that fail alike the one that the model has first.
        """
        cost = sum(map(_price, self.steps))
        return not self.closed, max(cost, self.cost) >= FILTER, self.length, cost, self.place, self.steps


class Explainer:
    """Chains for the pairs of the nodes of a tape, whose ``values`` are those of one execution."""

    def __init__(self, tape: Tape, values: list[Rows]) -> None:
        self.tape = tape
        self.values = values
        self._known: dict[tuple[int, int, int], Path] = {}
        self._open: set[tuple[int, int, int]] = set()
        self._bodies = {v: body for group in tape.groups for v, body, kind in group if kind == 0}
        self._columns: dict[int, Rows] = {}
        self._graphs: dict[int, nx.DiGraph] = {}

    def violation(self, axiom: TapeCheck) -> Violation:
        """The edges that show that the axiom fails, joined where they make one communication."""
        rows, place = self.values[axiom.node], self.tape.checks.index(axiom)
        if axiom.negated:
            return Violation.of(axiom.name, (), 1, place)
        if axiom.test == "irreflexive":
            pairs = [(x, x) for x, row in enumerate(rows) if row >> x & 1]
        else:
            pairs = [(x, y) for x, row in enumerate(rows) for y in bits.bits(row)]
        found = [
            Violation.of(axiom.name, p[1], p[0], place)
            for x, y in pairs[:24]
            if (p := self.path(axiom.node, x, y) if axiom.test == "irreflexive" else self._pattern(axiom.node, x, y))
        ]
        return min(found, default=Violation.of(axiom.name, (), FILTER, place), key=lambda v: v.rank)

    def _pattern(self, node: int, x: int, y: int) -> Path | None:
        """What must not be: of an intersection there by the one part and back by the other, so that it is a cycle."""
        parts = list(dict.fromkeys(sorted(self._parts(node, x, y), key=lambda p: -p[0])))
        shown = [p for p in parts if p[1] and p[0] < FILTER] or parts[-1:]
        if len(shown) < 2 or x == y:
            return shown[0] if shown else None
        (there, on), (back, off), *others = shown
        cost = there + back + sum(p[0] for p in others)
        cycle = min((*on, *_reversed(off)), (*off, *_reversed(on)), key=_backwards)
        return cost, (*cycle, *(s for p in others for s in p[1]))

    def _parts(self, node: int, x: int, y: int) -> Iterator[Path]:
        """The chains of all parts of an intersection; for a member of a domain or a range, that of a pair with it."""
        i = self.tape.code[node]
        if not self.values[node][x] >> y & 1:
            return
        match i.op:
            case "and":
                yield from self._parts(i.a, x, y)
                yield from self._parts(i.b, x, y)
            case "sub":
                yield from self._parts(i.a, x, y)
            case "dom":
                found = _best([self.path(i.a, x, z) for z in bits.bits(self.values[i.a][x])])
                yield from () if found is None else (found,)
            case "rng":
                found = _best([self.path(i.a, z, x) for z in bits.bits(self._column(i.a, x))])
                yield from () if found is None else (found,)
            case "or":
                ways = (self._pattern(i.a, x, y), self._pattern(i.b, x, y))
                found = _best(list(ways))
                yield from () if found is None else (found,)
            case _:
                found = self.path(node, x, y)
                yield from () if found is None else (found,)

    def path(self, node: int, x: int, y: int) -> Path | None:
        """The cheapest chain for the pair (x, y) of a node, ``None`` if it is not in the node."""
        if not self.values[node][x] >> y & 1:
            return None
        key = (node, x, y)
        found = self._known.get(key)
        if found is not None or key in self._open:
            return found
        self._open.add(key)
        found = self._find(node, x, y)
        self._open.discard(key)
        if found is not None:
            self._known[key] = found
        return found

    def _find(self, node: int, x: int, y: int) -> Path | None:
        i = self.tape.code[node]
        match i.op:
            case "base":
                return (0, ()) if x == y else (COSTS.get(i.name, FILTER), (Step(x, y, i.name),))
            case "or" | "and":
                return _best([self.path(i.a, x, y), self.path(i.b, x, y)])
            case "sub":
                return self.path(i.a, x, y)
            case "inv":
                back = self.path(i.a, y, x)
                return back and (back[0] + FILTER * any(s.kind == "po" for s in back[1]), _reversed(back[1]))
            case "seq":
                middle = self.values[i.a][x] & self._column(i.b, y)
                return _best([_chain(self.path(i.a, x, z), self.path(i.b, z, y)) for z in bits.bits(middle)])
            case "opt" | "star" if x == y:
                return 0, ()
            case "opt":
                return self.path(i.a, x, y)
            case "plus" | "star":
                return self._shortest(i.a, x, y)
            case "rec":
                return self.path(self._bodies[node], x, y)
            case _:  # products, complements, domains: no step of an execution
                return (0, ()) if x == y else (FILTER, (Step(x, y, i.op),))

    def _column(self, node: int, y: int) -> int:
        columns = self._columns.get(node)
        if columns is None:
            columns = self._columns[node] = bits.inverse(self.values[node])
        return columns[y]

    def _shortest(self, node: int, x: int, y: int) -> Path | None:
        """The cheapest path of at least one step."""
        graph = self._graphs.get(node)
        if graph is None:
            graph = self._graphs[node] = bits.network(self.values[node])

        def price(u: int, v: int) -> int | None:
            step = self.path(node, u, v)
            return None if step is None else step[0]

        found = cheapest(graph, x, y, price)
        if found is None:
            return None
        cost, edges = found
        paths = [self.path(node, u, v) for u, v in edges]
        return cost, tuple(s for p in paths if p is not None for s in p[1])


def _best(paths: list[Path | None]) -> Path | None:
    return min((p for p in paths if p is not None), default=None, key=lambda p: p[0])


def _chain(a: Path | None, b: Path | None) -> Path | None:
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])


def _price(step: Step) -> int:
    """What a step costs that may stand for several."""
    if step.kind == "fr":
        return COSTS["rf"] + COSTS["co"]
    return FILTER if step.kind == "po^-1" else COSTS.get(step.kind.removesuffix("^-1"), FILTER)


def _backwards(steps: tuple[Step, ...]) -> int:
    """How many steps lead against their edge from one instruction to another."""
    return sum(s.kind.endswith("^-1") and s.kind not in WITHIN for s in join_steps(steps))


def _reversed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(_inverse(s) for s in reversed(steps))


def _inverse(step: Step) -> Step:
    kind = step.kind.removesuffix("^-1") if step.kind.endswith("^-1") else f"{step.kind}^-1"
    return Step(step.target, step.source, kind)


def join_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """rf^-1 followed by co as fr, and consecutive steps of program order as one."""
    out: list[Step] = []
    for step in steps:
        last = out[-1] if out else None
        if last is not None and last.target == step.source:
            if (last.kind, step.kind) == ("rf^-1", "co"):
                out[-1] = Step(last.source, step.target, "fr")
                continue
            if last.kind == step.kind and step.kind in ("po", "co") and last.source != step.target:
                out[-1] = Step(last.source, step.target, step.kind)
                continue
        out.append(step)
    if len(out) > 2 and out[-1].target == out[0].source:  # the seam of a cycle
        if (out[-1].kind, out[0].kind) == ("rf^-1", "co"):
            out = [Step(out[-1].source, out[0].target, "fr"), *out[1:-1]]
        elif out[-1].kind == out[0].kind and out[0].kind in ("po", "co"):
            out = [Step(out[-1].source, out[0].target, out[0].kind), *out[1:-1]]
    return tuple(out)
