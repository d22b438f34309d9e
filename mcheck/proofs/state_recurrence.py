"""Recurrence of states: the periods of a loop after which an execution has the same canonical form twice.

``mcheck.proofs.parametric_proof`` says why that is of interest, and what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import lcm

from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis.slicing import maps_may_change, memory_matters, object_names
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.machine_copies import copy_machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.operations.scheduler import ChooseAgent, execute, first_runnable
from mcheck.engines.protocol.reduction.canonical_form import Form, Forms, normalise_window
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.cyclic_names import UNROTATED, RotatedNames, Rotation
from mcheck.findings import catalogue
from mcheck.ir import ops
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity
from mcheck.proofs.instances import CodePositions, HorizonReached, Instances, LoopPositions
from mcheck.proofs.rotation_symmetry import is_fixed_behind
from mcheck.proofs.streaming_writes import Loop, StreamingWrites, find_streaming_writes

SEVERAL = "steps whose order may vary or change the result"
FOUND = "something is found"
WORDS = "words that operations other than loads and stores write, and that matter or are strong"
REPEATABLE_WRITES = frozenset(("write",))
GROWING = "every round leaves state behind that later rounds may still observe"


class NoRecurrence(Aperiodic):
    """No state has repeated so far."""


class _RecurrenceFound(Exception):
    """The execution has reached a canonical form for the second time."""


class SplitAccess(Exception):
    """An access crosses the end of a block that a rotation moves as one."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Two equal states of an execution, after ``earlier`` periods of the agent ``lead`` and ``distance`` rounds later.

    They are equal up to a rotation; after ``steps`` more rounds the state is the same. With ``spare`` periods fewer all
    agents would still have been in their loops at the first of the two.
    """

    earlier: int
    distance: int
    steps: int
    spare: int
    lead: int


@dataclass(frozen=True, slots=True)
class Periods:
    """The rounds of a program, and how they are followed.

    ``text`` is their period in the code, ``unit`` a shorter one that ``rotation`` maps to the next.
    """

    text: LoopPeriodicity
    unit: LoopPeriodicity
    rotation: Rotation | None = None
    in_step: bool = False
    """Whether no agent enters its next period while others can continue in theirs."""

    def find_recurrence(
        self, setup: Setup, loops: Mapping[int, Loop], numbers: Instances | None = None,
        states: dict[int, Machine] | None = None,
    ) -> Recurrence:  # fmt: skip
        """Find two periods of an execution with the same canonical form.

        The ``states`` after periods are stored if a mapping is given.
        """
        contents = memory_matters(setup.program)
        if contents and self._decides(setup):
            raise Aperiodic("what is stored and may decide something")
        if contents and self.text.coordinates:
            raise Aperiodic("coordinates that grow with the rounds, and something depends on memory")
        if contents and self.text.written:
            raise Aperiodic("addresses that are written grow with the rounds, and something depends on memory")
        stripes = find_streaming_writes(setup.program, setup, loops, self.unit)
        for lead in (k for k, loop in loops.items() if loop.length):
            found = self.follow(setup, loops, lead, stripes, Forms(setup, contents=contents), numbers, states)
            if found is not None:
                return found
        raise Aperiodic("no thread has a loop that runs on")

    def _decides(self, setup: Setup) -> bool:
        """Return whether anything may depend on stored values that differ between periods."""
        uneven, asked = self.text.aperiodic_values(), setup.find_deciding_objects()
        if asked is None:
            return bool(uneven) or (bool(self.text.values) and maps_may_change(setup.program))
        return "" in uneven or not uneven.keys().isdisjoint(object_names(setup.program, asked))

    def follow(
        self, setup: Setup, loops: Mapping[int, Loop], lead: int, stripes: list[StreamingWrites], forms: Forms,
        numbers: Instances | None, states: dict[int, Machine] | None,
    ) -> Recurrence | None:  # fmt: skip
        """Find a recurrence by the periods of one agent; ``None`` if it does not reach its loop."""
        seen: dict[int, tuple[Form, LoopPositions | None]] = {}
        rotation, events, looked = self.rotation, 0, False
        found: list[Recurrence] = []
        entered: set[int] = set()
        stand = CodePositions.in_program(setup) if numbers is None else numbers.positions(setup)

        def place(a: Agent, turn: int) -> object:
            at = stand.at(a)
            return (at - turn * loops[a.index].length, "in its loop") if a.index in entered else at

        def watch(m: Machine, turn: int) -> None:
            nonlocal events
            check_deterministic(m)
            before, events = events, m.window.count
            if found or (not m.window.has_merged and before < events):
                return  # no event has gone: no state with more of them is alike
            if rotation is not None and any(h.splits_ring_block for h in m.histories.values()):
                raise SplitAccess
            moving = [x.moving(turn, _oldest_period(m, stand, loops, self.unit.period, entered)) for x in stripes]
            turned = UNROTATED if rotation is None else RotatedNames(rotation, turn)
            form = forms.build(m, lambda a: place(a, turn), moving, turned)
            at = _positions_in_loops(m, stand, loops, entered if not self.text.counted else set(loops))
            here = None if at is None else LoopPositions(at, None if numbers is None else numbers.current)
            for k, (other, earlier) in seen.items():
                if earlier is not None and here is not None and other == form:
                    distance = (turn - k) * self.unit.period
                    steps, spare = self.rounds_to_add(m, distance, setup, loops), _spare_periods(earlier.at, loops)
                    found.append(Recurrence(k, distance, steps, spare, lead))
                    if numbers is None:
                        raise _RecurrenceFound
                    numbers.between = earlier, here
                    break
            if states is not None and here is not None:
                states[turn] = copy_machine(m)
            seen[turn] = form, here

        def due(m: Machine, turn: int) -> bool:
            nonlocal looked
            looked = True
            return self.is_compared(turn) and (
                rotation is None or all(done >= self.whole for _, done in _completed_periods(m, stand, loops, entered))
            )

        stepping = pause_each_period(stand, loops, lead, watch, due, entered)
        pick = _pick_in_step(stand, loops) if self.in_step else first_runnable

        def before(m: Machine, agent: Agent) -> None:
            if numbers is not None:
                numbers.before_step(m, agent)
                if found and numbers.find_first(found[0].distance, found[0].steps) is not None:
                    raise _RecurrenceFound
            stepping(m, agent)

        try:
            m = execute(setup if numbers is None else numbers.start(), before_step=before, choose_agent=pick)
        except _RecurrenceFound:
            return found[0]
        except HorizonReached as enough:
            m = enough.machine
        check_deterministic(m)
        if not seen and looked:
            raise NoRecurrence(GROWING)
        if not seen:
            return None
        raise NoRecurrence(
            _describe_difference(m, list(seen.values())) if len(seen) > 1 else "a loop that does not run on"
        )

    @property
    def whole(self) -> int:
        """Number of followed periods in a period of the text."""
        return self.text.period // self.unit.period

    def is_compared(self, turn: int) -> bool:
        """Return whether the state after so many periods is compared.

        If several make up a period of the text, two neighbours every half of it: mostly states are equal from some
        round on.
        """
        return turn % max(self.whole // 2, 1) < 2

    def rounds_to_add(self, m: Machine, distance: int, setup: Setup, loops: Mapping[int, Loop]) -> int:
        """Return how many more rounds lead to the same state, where ``distance`` rounds lead to it up to a rotation.

        The same number, if the rotation leaves the code after the loops unchanged.
        """
        if self.rotation is None:
            return distance
        places = {a.index: a.pc for a in m.agents}
        alone = not self.text.counted and is_fixed_behind(self.rotation, setup, loops, places)
        return distance if alone else lcm(distance, self.text.period)


def pause_each_period(
    stand: CodePositions, loops: Mapping[int, Loop], lead: int, watch: Callable[[Machine, int], None],
    due: Callable[[Machine, int], bool], entered: set[int],
) -> Callable[[Machine, Agent], None]:  # fmt: skip
    """Return a hook that normalises the window at the last visible operation of each period of the leading agent.

    It then calls ``watch`` if the period is ``due``, and adds the agents that have reached their loops to ``entered``.

    The agent is in its loop there also in the program without the next period, as its first operation is not local.
    """
    periods = 0
    loop = loops[lead]
    last = _last_visible(stand.code[lead], loop)

    def before(m: Machine, agent: Agent) -> None:
        nonlocal periods
        mine = loops.get(agent.index)
        if mine is not None and mine.first <= stand.at(agent) < mine.end:
            entered.add(agent.index)
        if agent.index != lead or lead not in entered:
            return
        if stand.next_visible(agent) < last + periods * loop.length:
            return
        periods += 1
        if due(m, periods - 1):
            normalise_window(m)
            watch(m, periods - 1)

    return before


def _pick_in_step(stand: CodePositions, loops: Mapping[int, Loop]) -> ChooseAgent:
    """Return the scheduler that runs agents period by period: the earliest period first, agents before their loops
    first.
    """

    def period(agent: Agent) -> float:
        loop, at = loops[agent.index], stand.at(agent)
        if not loop.length or at >= loop.end:
            return math.inf
        return (at - loop.first) // loop.length

    def pick(m: Machine) -> Agent | None:
        return min((a for a in m.agents if a.status == "run"), key=period, default=None)

    return pick


def _last_visible(code: tuple[ops.Op, ...], loop: Loop) -> int:
    """Return the last operation of a loop's first period that is not local; it may be one that is skipped."""
    end = loop.first + loop.length
    return next(pc for pc in range(end - 1, loop.start - 1, -1) if not code[pc].facets.computes)


def _positions_in_loops(
    m: Machine, stand: CodePositions, loops: Mapping[int, Loop], entered: set[int]
) -> dict[int, int] | None:
    """Return the positions of the agents in their loops; ``None`` if some agent is not in its loop.

    Agents that have not ``entered`` their loop and are past it do not count.
    """
    places: dict[int, int] = {}
    for agent in m.agents:
        loop = loops[agent.index]
        if not loop.length or (agent.index not in entered and stand.at(agent) >= loop.end):
            continue
        if not loop.start <= (at := stand.next_visible(agent)) < loop.end:
            return None
        if agent.status not in ("run", "blocked", "standing"):
            return None
        places[agent.index] = at
    return places


def _spare_periods(places: Mapping[int, int], loops: Mapping[int, Loop]) -> int:
    """Return how many periods fewer would have left all agents in their loops."""
    return min((loops[k].end - at - 1) // loops[k].length for k, at in places.items())


def _completed_periods(
    m: Machine, stand: CodePositions, loops: Mapping[int, Loop], entered: set[int]
) -> Iterator[tuple[Loop, int]]:  # fmt: skip
    """Yield the loops of agents that are in them or may reach them, with the number of completed periods."""
    for agent in m.agents:
        loop = loops[agent.index]
        if loop.length and (agent.index in entered or stand.at(agent) < loop.end):
            yield loop, max(stand.next_visible(agent) - loop.first, 0) // loop.length


def _oldest_period(m: Machine, stand: CodePositions, loops: Mapping[int, Loop], period: int, entered: set[int]) -> int:
    """Return the earliest period that some agent is still in."""
    return min(done + (x.cut.low + x.cut.ahead) // period for x, done in _completed_periods(m, stand, loops, entered))


def check_deterministic(m: Machine) -> None:
    """Raise ``Aperiodic`` if an execution could have taken another course, or has a finding that decides."""
    if m.reversals or m.guess_count or m.agents_to_split or any(entry.choices for entry in m.trace):
        raise Aperiodic(SEVERAL)
    if any(w.kind not in REPEATABLE_WRITES for word in m.tracked_words.values() for w in word.writes[1:]):
        raise Aperiodic(WORDS)
    if m.broken_axiom is not None or m.bound or m.reordering or m.takes_other_branch or m.not_followed is not None:
        bound = f"an execution that is followed up to {m.bound}" if m.bound else "an execution that the model forbids"
        raise Aperiodic(m.not_followed or m.reordering or bound)
    if any(catalogue.get(p.code).severity("ptx") == "error" for p in m.problems):
        raise Aperiodic(FOUND)


def _describe_difference(m: Machine, seen: Sequence[tuple[Form, LoopPositions | None]]) -> str:
    """Describe how the last two of the states differ."""
    one, other = seen[-2][0], seen[-1][0]
    for agent, before, after in zip(m.agents, one.agents, other.agents, strict=True):
        if before.place != after.place:
            return f"the progress of {m.name(agent)} relative to the others"
        for lane, (first, then) in enumerate(zip(before.lanes, after.lanes, strict=True)):
            for (name, value), (_, changed) in zip(first.registers, then.registers, strict=False):
                if value != changed:
                    return f"register {name} of {m.name(agent, lane)}, which is {value} and a period later {changed}"
    return "the state of the program, which differs at the ends of all periods"
