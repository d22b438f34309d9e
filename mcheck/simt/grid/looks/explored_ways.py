"""What has been found of the ways of warps that look at words, for all warps that come to the same state.

The cluster of ticket ``n`` looks at the word of ``n - 1``, then, as cluster ``n - 1`` has done, at that of ``n - 2``,
and so on. Where a warp goes from a branch to the place at which its ways end is decided by the words, which have not
changed since (no word is stored to after a cluster has looked at it: ``word_values``), and by what it holds in those
registers that are named on the ways and live at the branch. If another warp was there with the same values of these,
and all of its ways have been followed, they need not be followed again: they end as they did, with the registers that
they name as they were then, and all others as they are now. What was noted on the way, words that are looked at and
bytes that are read, is noted for all clusters. So each cluster costs a few rounds, not one for each before it.

Two warps are in the same state if digests of 256 bits are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.code import Unit
from mcheck.simt.grid.looks.function_ways import FunctionWays
from mcheck.simt.grid.looks.known_bits import Bits
from mcheck.simt.grid.looks.warp_states import State, join

MAX_ENDS = 8
"""The number of states in which ways may end, beyond which they are joined to one."""


@dataclass(slots=True)
class Explored:
    """The ways that have been followed."""

    ways: dict[int, FunctionWays] = field(default_factory=dict)
    """By the first place of a function, what is asked of it."""
    ends: dict[Hashable, Sequence[State]] = field(default_factory=dict)
    """By a state at a branch, those in which its ways end."""
    ended: set[Hashable] = field(default_factory=set)
    """The states from which all ways are known to end once the words hold their last values."""

    def of(self, unit: Unit) -> FunctionWays:
        """What is asked of the ways through a function."""
        if unit.start not in self.ways:
            self.ways[unit.start] = FunctionWays(unit)
        return self.ways[unit.start]


@dataclass(frozen=True, slots=True)
class Branch:
    """A state at a branch, with what is the same for all warps that are in it."""

    at: int
    state: State
    shared: Hashable


@dataclass(slots=True)
class Branches:
    """The states at branches to which ways from one place come, in which order, and the states in which they end."""

    nodes: list[Branch] = field(default_factory=list)
    numbers: dict[Hashable, int] = field(default_factory=dict)
    """By what is the same for equal states."""
    after: dict[int, set[int]] = field(default_factory=dict)
    """By the number of a state, those to which a way comes next."""
    ends: dict[int, dict[Hashable, State]] = field(default_factory=dict)
    """By the number of a state, or -1 for the first place, those in which ways from it end before they come to another
    one, by what is the same for equal ones.
    """

    def come(self, before: int, key: Hashable, shared: Hashable, at: int, state: State) -> tuple[int, bool]:
        """Come from one state at a branch, or from the first place, to another one; returns its number, and whether
        it is new.
        """
        number = self.numbers.setdefault(key, len(self.numbers))
        is_new = number == len(self.nodes)
        if is_new:
            self.nodes.append(Branch(at, state.copy(), shared))
            self.after[number] = set()
        if before >= 0:
            self.after[before].add(number)
        return number, is_new

    def repeated(self) -> list[Branch]:
        """The states to which ways may come again and again."""
        return [self.nodes[k] for part in self._parts() for k in part if len(part) > 1 or k in self.after[k]]

    def found(self) -> list[State]:
        """The states in which ways end."""
        return list({key: one for some in self.ends.values() for key, one in some.items()}.values())

    def ends_by_branch(self, base: Callable[[int], Bits]) -> dict[Hashable, Sequence[State]]:
        """By what the states at branches share, the states in which ways from there end."""
        found, made = dict[int, dict[Hashable, State]](), dict[Hashable, Sequence[State]]()
        for part in self._parts():
            mine = dict[Hashable, State]()
            for node in part:
                mine |= self.ends.get(node, {})
                for after in self.after[node] - set(part):
                    mine |= found[after]
            if len(mine) > MAX_ENDS:
                joined = join([state.copy() for state in mine.values()], base, mixed=False)
                mine = {("joined", *joined.key()): joined}
            states = tuple(state.copy() for state in mine.values())
            found |= dict.fromkeys(part, mine)
            made |= dict.fromkeys((self.nodes[node].shared for node in part), states)
        return made

    def _parts(self) -> list[list[int]]:
        """The states, together those between which ways go round; first those to which others lead."""
        import networkx as nx

        graph = nx.DiGraph(self.after)
        parts = nx.condensation(graph)
        return [sorted(parts.nodes[part]["members"]) for part in reversed(list(nx.topological_sort(parts)))]


def go_on_as(before: State, end: State, named: frozenset[int]) -> State:
    """The state in which a way ends that begins in one state and ends as another one has; ``named`` are the rows that
    it may have changed, or of which cases were known when it began.
    """
    registers = {row: before.settled(bits) for row, bits in before.registers.items()}
    uniform = dict(before.uniform)
    for row in named:
        if row in end.registers:
            registers[row] = end.registers[row]
        uniform.pop(row, None)
        if row in end.uniform:
            uniform[row] = end.uniform[row]
    return replace(end, registers=registers, uniform=uniform, votes=dict(end.votes))
