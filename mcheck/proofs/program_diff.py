"""Comparison of two programs with a common prefix, and transfer of executions from one to the other.

An execution in which every thread has executed only code of both programs is one of the second as well as of the first
(``ProgramDiff.transfer``). The code is compared operation by operation: the first ones of every thread, and the
ones, which a thread reaches by a branch past what lies between. Everything else that an execution depends on has to be
the same: the threads and agents, where objects lie and what they hold, and what is derived from the code as a whole
(``mcheck.engines.protocol.execution.setup``). Objects may be larger in the second program, as accesses in bounds of the
smaller ones are in bounds of the larger ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from mcheck.base.records import dataclass, replace
from mcheck.engines.protocol.analysis.code_facts import CodeFacts
from mcheck.engines.protocol.analysis.polling import find_awaited_value, is_redundant_poll
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.memory_values import SPARSE_SIZE
from mcheck.events.paths import exits_matter
from mcheck.ir import ops
from mcheck.ir.memory import Instance
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread


@dataclass(frozen=True, slots=True)
class CommonCode:
    """The operations of an agent that both programs have: the ``first`` ones, and of the others the ``last`` ones.

    ``end`` is the number of operations in the first program, ``more`` how many the second one has in addition.
    """

    first: int
    last: int
    end: int
    more: int

    @property
    def whole(self) -> bool:
        """Whether all operations are the same."""
        return self.first == self.end and not self.more


@dataclass(slots=True)
class ProgramDiff:
    """Two prepared programs, ``one`` and the ``other``, and how far the code of their agents is the same."""

    one: Setup
    other: Setup
    reach: list[CommonCode]

    @staticmethod
    def compare(one: Setup, other: Setup) -> ProgramDiff | None:
        """Compare two programs; ``None`` if an execution could tell them apart otherwise than by their code."""
        if not _same_frame(one, other):
            return None
        return ProgramDiff(one, other, [_common_code(one, other, k) for k in range(len(one.partition))])

    def continues_alike(self, agent: Agent, behind: bool) -> bool:
        """Return whether the next step of an agent is the same in both; ``behind`` if it is among the last ones."""
        reach = self.reach[agent.index]
        if reach.whole:
            return True
        at = next_visible(agent.code, agent.pc)
        if not behind and at >= reach.first:
            return False
        if at >= len(agent.code):
            return True
        return self._same_ways(agent, at, behind=behind)

    def _same_ways(self, agent: Agent, at: int, *, behind: bool) -> bool:
        """Return whether a common operation continues alike in both programs: same successors, same code ahead."""
        reach, op = self.reach[agent.index], agent.code[at]
        there = at + reach.more if behind else at
        thread, other = self._threads(agent)
        if isinstance(op, ops.MbarrierWait):
            spins = self.one.is_spin_wait(agent.index, at), self.other.is_spin_wait(agent.index, there)
            saves = (is_redundant_poll(t.code, t.labels, k) for t, k in ((thread, at), (other, there)))
            return spins[0] == spins[1] and next(saves) == next(saves)
        if isinstance(op, ops.Load) and op.sem != "weak":  # it looks for the loop that it is in
            loops = (find_awaited_value(t.code, t.labels, k) for t, k in ((thread, at), (other, there)))
            return next(loops) == next(loops)
        if not isinstance(op, ops.Branch):
            return True
        target, same = thread.labels[op.target], other.labels.get(op.target)
        if behind:
            return self._is_last(reach, target) and same == target + reach.more
        if target <= reach.first and same == target:
            return True
        return target != at + 1 and self._is_last(reach, target) and same == target + reach.more

    def find_exit_target(self, agent: Agent) -> int | None:
        """Return the place among the last operations that the next step of an agent may branch to."""
        reach = self.reach[agent.index]
        at = next_visible(agent.code, agent.pc)
        op = agent.code[at] if at < len(agent.code) else None
        if reach.whole or not isinstance(op, ops.Branch):
            return None
        thread, other = self._threads(agent)
        target, same = thread.labels[op.target], other.labels.get(op.target)
        return None if target <= reach.first and same == target else target

    @property
    def is_straight(self) -> bool:
        """Whether code where the programs differ, or after it, has no influence before an agent reaches it."""
        for k, reach in enumerate(self.reach):
            thread = self.one.program.threads[self.one.partition[k][0]]
            for at, op in enumerate(thread.code if not reach.whole else ()):
                if at >= reach.first:
                    if isinstance(op, ops.Branch) and thread.labels[op.target] <= reach.first:
                        return False
                elif isinstance(op, ops.MbarrierWait) or (isinstance(op, ops.Load) and op.sem != "weak"):
                    return False
        return True

    def applies_to(self, m: Machine, behind: set[int]) -> bool:
        """Return whether all agents stand where both programs are the same.

        An agent at the end of the one program where the other one continues has terminated.
        """
        return all(
            self._is_last(reach, a.pc) if a.index in behind else a.pc <= reach.first and a.status != "done"
            for a, reach in zip(m.agents, self.reach, strict=True)
            if not reach.whole
        ) and all(self._same_loops(a) for a in m.agents)

    def transfer(self, m: Machine, behind: set[int]) -> None:
        """Turn an execution of the one program into one of the other; all agents stand where both are the same."""
        other = self.other
        m.setup, m.program = other, other.program
        m.memory = m.memory.copy_into(other.program)
        m.window.program = other.program
        for instance in other.program.memory.instances:
            history = m.histories.get(instance.base)
            if history is not None:
                history.extend(instance.base + instance.object.size)
        for agent in m.agents:
            agent.code = other.program.threads[agent.threads[0]].code
            agent.emitters = m.make_emitters(agent.threads)
            more = self.reach[agent.index].more
            if agent.index in behind and more:
                agent.pc += more
                agent.loop_visits = {at + more: visit for at, visit in agent.loop_visits.items()}
                agent.loop_iterations = {at + more: count for at, count in agent.loop_iterations.items()}

    def _threads(self, agent: Agent) -> tuple[Thread, Thread]:
        first = agent.threads[0]
        return self.one.program.threads[first], self.other.program.threads[first]

    def _is_last(self, reach: CommonCode, place: int) -> bool:
        return place >= reach.end - reach.last

    def _same_loops(self, agent: Agent) -> bool:
        """Return whether the loop-carried state of the loops that an agent has entered is the same."""
        deciding = self.one.deciding_registers, self.other.deciding_registers
        return all(deciding[0](agent.index, at) == deciding[1](agent.index, at) for at in agent.loop_visits)


def next_visible(code: tuple[Op, ...], pc: int) -> int:
    """Return the position of the next operation that others may observe; the end of the code if there is none."""
    while pc < len(code) and code[pc].facets.computes:
        pc += 1
    return pc


# --- what has to be the same --------------------------------------------------------------------------------------


def _same_frame(one: Setup, other: Setup) -> bool:
    a, b = one.program, other.program
    return (
        (a.dialect, a.clustered) == (b.dialect, b.clustered)
        and _frame(one) == _frame(other)
        and _same_threads(a, b)
        and len(a.memory.instances) == len(b.memory.instances)
        and all(map(_contains, a.memory.instances, b.memory.instances))
        and exits_matter(a) == exits_matter(b)
        and all(_same_reading(one.facts_of(k), other.facts_of(k)) for k in range(len(one.partition)))
    )


def _frame(setup: Setup) -> tuple[object, ...]:
    """Return what is derived from a program as a whole and matters as soon as it runs."""
    return (
        setup.partition, setup.mbarriers, setup.needed_registers, setup.placements, setup.clock_size,
        setup.single_representative, setup.mbarriers_may_end,
        setup.relaxed_barriers, setup.sc_order_matters, setup.tracked_words, setup.tensor_maps,
        setup.unwritten_objects, setup.unrecorded_objects,
        setup.ignores_copied_data, setup.contents_matter, setup.reads_relaxed, setup.stored_addresses,
        setup.ordered_words, id(setup.tape),
    )  # fmt: skip


def _same_threads(a: Program, b: Program) -> bool:
    return len(a.threads) == len(b.threads) and all(
        x.place == y.place and x.name == y.name and x.init == y.init and x.types == y.types
        for x, y in zip(a.threads, b.threads, strict=True)
    )


def _contains(small: Instance, large: Instance) -> bool:
    """Return whether an object lies at the same address as another one and holds the same, perhaps followed by more."""
    a, b = small.object, large.object
    if (small.base, small.physical, small.cta) != (large.base, large.physical, large.cta) or a.size > b.size:
        return False
    if (a.size > SPARSE_SIZE) != (b.size > SPARSE_SIZE) or (a.init is None) != (b.init is None):
        return False
    if a.init is not None and b.init is not None and not b.init.startswith(a.init):
        return False
    return replace(a, size=b.size, dims=b.dims, init=b.init) == b


def _same_reading(one: CodeFacts, other: CodeFacts) -> bool:
    families = {op.family for r in (one, other) for op in r.thread.code if isinstance(op, ops.WaitGroup)}
    return (
        one.arrives_on_cp_async == other.arrives_on_cp_async
        and one.commits_wgmma == other.commits_wgmma
        and one.state_registers == other.state_registers
        and all(one.pending_depths(family) == other.pending_depths(family) for family in families)
    )


def _common_code(one: Setup, other: Setup, agent: int) -> CommonCode:
    """Return how far the code of an agent's threads is the same."""
    group = one.partition[agent]
    pairs = [(one.program.threads[t], other.program.threads[t]) for t in group]
    end, more = len(pairs[0][0].code), len(pairs[0][1].code) - len(pairs[0][0].code)
    first = last = end + min(more, 0)
    for a, b in pairs:
        first = _common_prefix(a.code, b.code, first)
    last = min(last - first, end, end + more)
    for a, b in pairs:
        last = _common_prefix(a.code[::-1], b.code[::-1], last)
    heads, others = one.loop_heads[agent], other.loop_heads[agent]
    first = min([first, *(at for at in heads ^ others if at < first)])
    for a, b in pairs:
        first = min([first, *(at for name, at in a.labels.items() if at < first and b.labels.get(name) != at)])
    if {at + more for at in heads if at >= end - last} != {at for at in others if at >= end + more - last}:
        last = 0
    return CommonCode(first, last, end, more)


def _common_prefix(a: Sequence[Op], b: Sequence[Op], most: int) -> int:
    """Return how many first operations two threads share, at most ``most``; their statements are the same, too."""
    shared = bytes(map(is_, a[:most], b[:most]))  # nearly all are
    k = shared.find(0)
    while k >= 0:
        if a[k].span != b[k].span or a[k] != b[k]:
            return k
        k = shared.find(0, k + 1)
    return most
