"""Where the ways through a function lead, and which registers matter on them."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.register_reads import places_after

END = -1
"""The place behind the code."""


def meeting_places(function: ptx.Function) -> dict[int, int]:
    """By place, the one at which all ways from it meet first: its immediate post-dominator; ``END`` behind the code."""
    import networkx as nx  # it takes longer to load than most modules take to check

    graph = nx.DiGraph()
    graph.add_node(END)
    for k, statement in enumerate(function.body):
        if statement.kind is Kind.INDEXED_BRANCH:
            return {}
        for following in places_after(function, k):
            graph.add_edge(following if following < len(function.body) else END, k)
        if statement.kind in (Kind.RETURN, Kind.EXIT, Kind.TRAP):
            graph.add_edge(END, k)
    found: dict[int, int] = nx.immediate_dominators(graph, END)
    return found


@dataclass(frozen=True, slots=True)
class Region:
    """The instructions on the ways from a place to another one: the rows of registers that they name, and the operands
    that are no registers and may differ between threads.
    """

    named: frozenset[int]
    fixed: tuple[ptx.Operand, ...]


@dataclass
class FunctionWays:
    """What is asked of the ways through a function; registers are named by their rows."""

    unit: Unit
    _regions: dict[tuple[int, int], Region] = field(default_factory=dict)
    _reachable: dict[int, frozenset[int]] = field(default_factory=dict)

    @cached_property
    def meets(self) -> dict[int, int]:
        """Where the ways from a place meet."""
        return meeting_places(self.unit.function)

    @cached_property
    def live(self) -> list[frozenset[int]]:
        """By place, the registers whose values may be read from there on; behind the code, none."""
        body = self.unit.function.body
        found = [frozenset[int]()] * (len(body) + 1)
        before: list[list[int]] = [[] for _ in found]
        for k in range(len(body)):
            for following in places_after(self.unit.function, k):
                before[following].append(k)
        uses = [frozenset(self.unit.frame + r.index for r in s.uses) for s in body]
        kills = [
            frozenset(self.unit.frame + r.index for r in s.defs) if s.guard is None else frozenset[int]() for s in body
        ]
        todo = list(range(len(body)))
        while todo:
            k = todo.pop()
            after = frozenset[int]().union(*(found[j] for j in places_after(self.unit.function, k)))
            new = after - kills[k] | uses[k]
            if new != found[k]:
                found[k] = new
                todo += before[k]
        return found

    def reachable(self, place: int) -> frozenset[int]:
        """The places to which lanes at this one may come."""
        if place not in self._reachable:
            body, todo, found = self.unit.function.body, [place], {place}
            if any(statement.kind is Kind.INDEXED_BRANCH for statement in body):
                todo, found = [], set(range(len(body)))
            while todo:
                at = todo.pop()
                if 0 <= at < len(body):
                    new = set(places_after(self.unit.function, at)) - found
                    found |= new
                    todo += new
            self._reachable[place] = frozenset(found)
        return self._reachable[place]

    def region(self, start: int, end: int) -> Region:
        """The ways from a place that end where they come to another one."""
        key = start, end
        if key not in self._regions:
            body, todo, known = self.unit.function.body, [start], {end}
            named, fixed = set[int](), dict[ptx.Operand, None]()
            while todo:
                k = todo.pop()
                if k in known or k >= len(body):
                    continue
                known.add(k)
                todo += places_after(self.unit.function, k)
                named.update(self.unit.frame + r.index for r in (*body[k].uses, *body[k].defs))
                for operand in body[k].operands:
                    fixed |= dict.fromkeys(_fixed(operand))
            self._regions[key] = Region(frozenset(named), tuple(fixed))
        return self._regions[key]


def _fixed(operand: ptx.Operand) -> list[ptx.Operand]:
    """The predefined registers and addresses of variables in an operand."""
    match operand:
        case ptx.Special() | ptx.Symbol():
            return [operand]
        case ptx.Address():
            return [one for item in operand.items for one in _fixed(item)]
        case ptx.Vector():
            return [one for item in operand.items for one in _fixed(item)]
    return []
