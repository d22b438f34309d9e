"""Determined waits: waits that cannot end before certain writes, in whatever order the threads run.

A grid barrier counts arrivals: no thread passes round k before all have arrived for it, and nobody arrives for round
k + 1 before it has passed round k. How many later arrivals a wait also observes is chance, and multiplies the
executions. None of them has to be run but the one in which each wait observes as little as it can.

Let X be the execution in which each awaited load returns the first write in coherence order that ends its wait, and the
reads of atomics whose results nobody uses acquire nothing. X runs to its end without a finding, and without a choice or
a reversal other than those of awaited loads; nothing but these loads decides what a thread does. Let O(a) be what wait
a observes in X: the write that it returns, and if that is an addition, all that came before it. Checked is that every
word with waits is one of these, and that its accesses are morally strong with one another (8.7):

* A *counter*: all its writes add a positive number, and nobody uses what they return. For each wait a for n or more,
  and each d in O(a), the additions that the model does not put after d in X make less than n. A wait for n exactly has
  in addition that those not ordered after the wait make n at most.
* A *flag*: all its writes are stores of known numbers, each at the only place in coherence order that the model allows.
  The other writes that may end wait a are ordered after a in X, or are not readable in X, or are the same kind of store
  by the same thread as the one that a returns, and later. Those that may not end it are ordered after a, or come before
  the one that a returns.

Let Y be any other execution of the model, and T the order of reads-from, dependencies and barriers in it, which is
acyclic (8.10.4); everything that follows a wait depends on it. *Every wait of Y observes O(a), or a later store of the
same thread.* Let a be a wait that does not, one before which in T all do. Whatever a write that a has observed depends
on is before a in T. So the paths of program order, synchronisation and barriers that lead to such a write in X are in Y
as well.

* A counter: a lacks some d in O(a). If the model puts d before an addition that a has observed, because of such a path
  (8.10.1, 8.10.5), then d is observed as well, for additions form a chain of atomics. So a has observed only additions
  that it does not put after d, and they make less than n.
* A flag: what a returns is not ordered after a, for T has no cycle, and what is not readable in X is not so in Y.

So every release of X that a acquires is acquired in Y: a chain of atomics is observed as a whole (8.9.2), and a later
store to the word is in the release pattern of an earlier one, or has the same release before it (8.8). Everything else
that orders memory is the same in both. So Y orders at least what X does, and what X has not (a race, a use outside a
lifetime) Y has not either. And every thread of Y ends: of the steps that it lacks the first in the order of X would be
a wait, whose counter has all of O(a), and for n exactly no more; or whose flag holds what ends it, for what does not
comes before in coherence order, or after the wait.

The lanes of a warp that add to a counter by one instruction, or wait for it, may be one agent in X: an addition then
stands for those of all lanes (``mcheck.engines.protocol.operations.joint_arrivals``).

Nothing here is about orders of steps, so executions that no order shows (load buffering, 2+2W) are among Y. Of other
words, the order of accesses is fixed in X, or they have additions that commute. That more order shows no more findings
is a property of the shipped models; for other models this is not done.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from itertools import pairwise

from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, Setup
from mcheck.engines.protocol.operations.coherence_positions import may_satisfy
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.engines.protocol.operations.tracked_locations import find_observed_chain
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.acquired_writes import WriteOrder
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Placement, Word, Write
from mcheck.engines.protocol.state.trace import Prefix
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.def_use import written_registers
from mcheck.ir.scopes import scopes_are_mutual

ADD, STORE = "add", "write"


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait that has ended: what it waited for, and the writes that it has observed, the one it returned first."""

    agent: int
    step: int
    condition: tuple[str, str, int]
    observed: tuple[Write, ...]


@dataclass(slots=True)
class FirstEnds:
    """The observer of an execution in which each wait returns the first write that ends it."""

    waits: dict[int, list[Wait]] = field(default_factory=dict)
    """By the address of the word."""
    steps: set[tuple[int, int]] = field(default_factory=set)
    """The waits, as agent and step."""
    returned: dict[int, int] = field(default_factory=dict)
    """By position in the trace, the write that a wait returned."""
    order: dict[int, WriteOrder] = field(default_factory=dict)
    """By the address of the word."""
    accesses: dict[int, set[tuple[str, Placement]]] = field(default_factory=dict)
    """By the address of the word, the scopes of its accesses and the places of their threads."""
    plain: set[int] = field(default_factory=set)
    """The words with other accesses than strong writes and waits."""
    joint: dict[tuple[int, int], int] = field(default_factory=dict)
    """For each addition by the lanes of an agent together, as agent and step: which of the agent's steps all its lanes
    have made before any of them adds.
    """
    joint_words: set[int] = field(default_factory=set)
    """The words with such additions."""
    inapplicable: bool = False
    """Whether a value other than those that end waits may decide something, or a wait is more than a load."""

    def on_wait(self, m: Machine, agent: Agent, word: Word, index: int, condition: tuple[str, str, int]) -> None:
        """Record a wait that the write at ``index`` ends."""
        op = agent.code[agent.pc]
        wanted = frozenset[str]().union(*(m.setup.sliced_registers[t] for t in agent.threads))
        if not isinstance(op, ops.Await) or op.followed or any(name in wanted for name, _ in written_registers(op)):
            self.inapplicable = True
        observed = tuple(find_observed_chain(word, index))
        self.waits.setdefault(word.address, []).append(Wait(agent.index, agent.step, condition, observed))
        self.steps.add((agent.index, agent.step))
        self.returned[len(m.trace) - 1] = word.writes[index].write_id
        self.order.setdefault(word.address, WriteOrder()).add_observed(agent.index, observed)

    def on_access(self, m: Machine, agent: Agent, word: Word, event: Event, kind: str, *, waits: bool) -> None:
        """Record an access to a word."""
        if kind not in (ADD, STORE) and not waits:
            self.plain.add(word.address)
            wanted = m.setup.sliced_registers[agent.threads[0]]
            self.inapplicable |= any(name in wanted for name, _ in written_registers(event.op))
        self.inapplicable |= waits and kind != "read"
        if Tag.WEAK in event.tags or event.order is None or (event.address, event.size) != (word.address, word.size):
            self.plain.add(word.address)
        self.accesses.setdefault(word.address, set()).add((event.scope or "sys", agent.placement))

    def on_write(self, m: Machine, agent: Agent, word: Word) -> None:
        """Record a write."""
        assert m.causality is not None
        self.order.setdefault(word.address, WriteOrder()).add_write(agent, m.causality.known_to_each_lane(agent))
        if not agent.is_single_thread:
            self.joint[agent.index, agent.step] = agent.time[agent.index]
            self.joint_words.add(word.address)

    def is_before(self, wait: Wait, write: Write) -> bool:
        """Whether a wait, in every lane, is ordered before a write."""
        together = self.joint.get((write.agent, write.step)) if wait.agent == write.agent else None
        return (write.time[wait.agent] if together is None else together) >= wait.step


def has_other_ways(m: Machine) -> bool:
    """Whether an execution without a finding is one of many that may differ in what waits observe."""
    clean = m.outcome == "end" and not m.problems and m.broken_axiom is None
    return clean and bool(m.tracked_words) and (bool(m.reversals or m.bound) or any(e.choices for e in m.trace))


def find_least_execution(setup: Setup) -> tuple[bool, list[Prefix]]:
    """Run the execution in which each wait observes least. Return whether it stands for all executions of the model,
    and its steps if it shows a finding.
    """
    if not setup.follows_causality or Pass.DETERMINED_WAITS not in setup.passes:  # other models
        return False, []
    seen = FirstEnds()
    try:
        m = execute(setup, waits=seen)
    except (Split, NewMbarrier, NewOrder, NewWord):
        return False, []
    if m.problems:
        steps = ((e.actor, (seen.returned[k],) if k in seen.returned else ()) for k, e in enumerate(m.trace))
        return False, [tuple(steps)]
    return _leaves_no_other_way(m) and not seen.inapplicable and _are_determined(m, seen), []


def _leaves_no_other_way(m: Machine) -> bool:
    """Whether an execution runs to its end, and nothing but its waits could have gone another way."""
    ends = m.outcome == "end" and all(a.status == "done" for a in m.agents) and m.broken_axiom is None
    one_way = not (m.reversals or m.phase_reversals or m.agents_to_split or m.mbarriers or m.branch_values)
    followed = not (m.guess_count or m.bound or m.reordering or m.not_followed or m.inexact_reason)
    return ends and one_way and followed and not any(e.choices or e.failed_steps for e in m.trace)


def _are_determined(m: Machine, seen: FirstEnds) -> bool:
    """Whether every word with waits is a counter or a flag whose waits cannot end otherwise."""
    if not seen.joint_words <= seen.waits.keys():
        return False
    lanes = tuple(len(agent.threads) for agent in m.agents)
    for address, waits in seen.waits.items():
        word = m.tracked_words[address]
        if address in seen.plain or not _are_morally_strong(seen.accesses[address]):
            return False
        kinds = {w.kind for w in word.writes[1:]}
        determined = (
            kinds <= {ADD} and _are_determined_by_number(word, waits, seen, lanes)
        ) or (kinds <= {STORE} and all(_is_determined_by_store(word, wait, seen) for wait in waits))  # fmt: skip
        if not determined:
            return False
    return True


def _are_morally_strong(accesses: set[tuple[str, Placement]]) -> bool:
    """Whether all accesses to a word are morally strong with one another."""
    known = sorted(accesses)
    return all(scopes_are_mutual(*a, *b) for k, a in enumerate(known) for b in known[k:] if a[1] != b[1])


# --- counters -----------------------------------------------------------------------------------------------------


def _are_determined_by_number(word: Word, waits: list[Wait], seen: FirstEnds, lanes: tuple[int, ...]) -> bool:
    """Whether no wait for a counter can end without any of the additions that it has observed; ``lanes`` are those of
    each agent.
    """
    values = [w.value for w in word.writes]
    known = [v for v in values if v is not None]
    most = 1 << 8 * word.size - 1
    if len(known) < len(values) or known != sorted(set(known)) or known[-1] >= most:
        return False  # unknown, a number that is not positive, or one that may have another sign
    steps = [now - before for before, now in pairwise(known)]
    count = _Count(known[0], tuple(zip(word.writes[1:], steps, strict=True)), seen, seen.order[word.address], lanes)
    for wait in waits:
        needed = _least_number(wait.condition, known[0])
        if needed is None or not 0 <= needed < most:
            return False
        alone = lanes[wait.agent] == 1
        others = (
            d for d in wait.observed if d.agent >= 0 and not (alone and d.agent == wait.agent and d.step < wait.step)
        )
        if any(count.without(d) >= needed for d in others):
            return False
        if wait.condition[1] == "==" and count.before(wait) > needed:
            return False
    return True


def _least_number(condition: tuple[str, str, int], initial: int) -> int | None:
    """The least number of a counter that ends a wait; ``None`` for other conditions."""
    match condition:
        case (_, ">=" | "==", right):
            return right
        case (_, ">", right):
            return right + 1
        case (_, "!=", right) if right == initial:
            return right + 1
    return None


class _Count:
    """The number that additions to a word make."""

    def __init__(
        self, initial: int, additions: tuple[tuple[Write, int], ...], seen: FirstEnds, order: WriteOrder,
        lanes: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.initial, self.additions, self.seen, self.order, self.lanes = initial, additions, seen, order, lanes
        self.known: dict[int, int] = {}
        by_agent: dict[int, list[tuple[Write, int]]] = {}
        for w, step in sorted(additions, key=lambda pair: pair[0].step):
            by_agent.setdefault(w.agent, []).append((w, step))
        self.threads: dict[int, tuple[list[int], list[int]]] = {}
        """For each agent, its additions in program order with all that come before each, and the sums before each."""
        for agent, mine in by_agent.items():
            sums = [0]
            for _, step in mine:
                sums.append(sums[-1] + step)
            self.threads[agent] = [order.up_to(w) for w, _ in mine], sums

    def without(self, missing: Write) -> int:
        """The most that it can be before an addition, or that of one lane: all that need not come after it."""
        place = self.order.places[missing.agent, missing.step]
        if place not in self.known:
            self.known[place] = self.initial + sum(
                self._other_lanes(missing, place)
                if agent == missing.agent and self.lanes[agent] > 1
                else sums[bisect_left(mine, 1, key=lambda before: before >> place & 1)]
                for agent, (mine, sums) in self.threads.items()
            )
        return self.known[place]

    def _other_lanes(self, missing: Write, place: int) -> int:
        """What the lanes of an agent may add before one of them makes a ``missing`` addition."""
        out = 0
        for w, step in self.additions:
            if w is missing:
                out += step - step // self.lanes[missing.agent]
            elif w.agent == missing.agent and not self.order.up_to(w) >> place & 1:
                out += step
        return out

    def before(self, wait: Wait) -> int:
        """The most that it can be before a wait has ended."""
        return self.initial + sum(step for w, step in self.additions if not self.seen.is_before(wait, w))


# --- flags --------------------------------------------------------------------------------------------------------


def _is_determined_by_store(word: Word, wait: Wait, seen: FirstEnds) -> bool:
    """Whether a wait for a flag can only return the store that it has returned, or a later one of the same thread that
    releases as much.
    """
    (returned, *_) = wait.observed
    if returned.value is None:  # an unknown value ends the wait, or not
        return False
    place = word.writes.index(returned)
    for k, w in enumerate(word.writes):
        if w is returned or seen.is_before(wait, w):
            continue
        if w.value is None:
            return False
        ends = may_satisfy(w.value, *wait.condition)
        if k < place:
            continue  # overwritten before the wait, or does not end it
        if not ends or not (returned.agent < 0 or _releases_as_much(returned, w)):
            return False
    return True


def _releases_as_much(one: Write, later: Write) -> bool:
    """Whether the second of two stores is by the same thread, after the first one, and of the same kind."""
    if one.event is None or later.event is None or one.agent != later.agent or one.step > later.step:
        return False
    return (one.event.tags, one.event.scope) == (later.event.tags, later.event.scope)
