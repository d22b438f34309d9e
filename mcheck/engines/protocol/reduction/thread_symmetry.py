"""Thread symmetry: threads of one warp with the same code, about which nothing is asked, are interchangeable.

An execution and the one with two such threads exchanged end in the same state as far as it is asked for, so one of them
is enough: a counter that a whole warp increments then has as many executions as the thread that is asked about has
positions among the others.
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.sync_objects import MAX_WRITES
from mcheck.engines.protocol.state.trace import Prefix
from mcheck.ir import ops
from mcheck.ir.ops import Op

SymmetricThreads = dict[int, tuple[int, ...]]
"""By agent, the agents that it is interchangeable with."""


def find_symmetric_threads(setup: Setup) -> SymmetricThreads:
    """Return the interchangeable agents among those of one thread."""
    if Pass.THREAD_SYMMETRY not in setup.passes:
        return {}
    found: dict[object, list[int]] = {}
    for k, group in enumerate(setup.partition):
        thread = setup.program.threads[group[0]]
        asked = setup.observed_registers is None or setup.observed_registers_of(k)
        if len(group) > 1 or asked or thread.init or not all(map(_is_same_in_all_lanes, thread.code)):
            continue
        key = (thread.role, thread.place.cta, thread.place.warp, tuple(map(id, thread.code)))
        found.setdefault(key, []).append(k)
    return {k: tuple(members) for members in found.values() if len(members) > 1 for k in members}


def _is_same_in_all_lanes(op: Op) -> bool:
    """Return whether the effect of an operation does not depend on which lane executes it."""
    return op.facets.computes or isinstance(op, ops.Branch | ops.Exit | ops.Await | ops.ScalarAccess | ops.Fence)


class ThreadRenaming:
    """A renaming of agents: those of a class are numbered in the order of their first occurrence."""

    def __init__(self, symmetric: SymmetricThreads) -> None:
        self._symmetric = symmetric
        self._new: dict[int, int] = {}
        self._used: dict[tuple[int, ...], int] = {}

    def agent(self, k: int) -> int:
        """Return the new name of an agent."""
        members = self._symmetric.get(k)
        if members is None:
            return k
        if k not in self._new:
            place = self._used.get(members, 0)
            self._used[members] = place + 1
            self._new[k] = members[place]
        return self._new[k]


def canonical_plan(plan: Prefix, symmetric: SymmetricThreads) -> Prefix:
    """Return the representative of a plan under exchanges of symmetric threads."""
    if not symmetric:
        return plan
    names = ThreadRenaming(symmetric)

    def way(chosen: int) -> int:
        """A choice; the name of a write has its agent in it."""
        agent, rest = divmod(chosen, MAX_WRITES)
        return (names.agent(agent - 1) + 1) * MAX_WRITES + rest if agent > 0 else chosen

    return tuple(
        (
            names.agent(who) if isinstance(who, int) else (names.agent(who[0]), *who[1:]),  # type: ignore[index]
            tuple(map(way, chosen)),
        )
        for who, chosen in plan
    )


def execution_signature(m: Machine, symmetric: SymmetricThreads) -> object:
    """Return a key that is equal for executions that differ by an exchange of symmetric threads only."""
    if not symmetric:
        return frozenset(m.decisions)
    names = ThreadRenaming(symmetric)
    for entry in m.trace:
        names.agent(entry.agent)
    return frozenset(_rename_fact(fact, names) for fact in m.decisions)


def _rename_fact(fact: object, names: ThreadRenaming) -> object:
    match fact:
        case (int(agent), step, ("reads" | "after") as kind, place, int(other), their_step):
            return names.agent(agent), step, kind, place, names.agent(other), their_step
        case (int(agent), step, "sc", int(other), their_step):
            return names.agent(agent), step, "sc", names.agent(other), their_step
        case ("guess", int(agent), step, taken):
            return "guess", names.agent(agent), step, taken
        case (int(agent), step, *rest):
            return names.agent(agent), step, *rest
    return fact
