"""Proofs for every number of rounds: a program with a constant N that is any number, at all numbers from one on.

The text says that code is alike in rounds a period apart (``mcheck.program.rounds``). One execution is followed until,
at the end of a period of one agent, it is in the same canonical form (``mcheck.kernel.canonical``) as some periods
before, all agents standing in their loops, as many rounds further on. So far nothing could have gone another way: no
reversal and no choice was noted. Let p be the rounds between the two, and M a number for which all agents are still in
their loops at the earlier one.

The programs with M, M + 1, ... M + p - 1 are run to their ends, epilogues included, from where they part from larger
ones: what all have in common is executed once (``mcheck.kernel.beginnings``), and smaller numbers are followed besides.
Where that cannot be, each is run from its beginning.

Where each of them has this one execution, without a finding, so has the program with any larger number N, by induction:
up to the later one of the two states it does what was seen, whatever N is, for no agent leaves its loop before. From
there on it has before it what the program with N - p has before it at the earlier one: code alike, in a form alike. So
it goes on as that one does, which has one execution without a finding.

In which order the steps are taken that could come in any makes no difference to the argument either. Mostly the first
agent that can go does, which goes no further ahead than the others let it. Agents that wait for nobody would run
through one after the other, and what the first ones leave behind would grow: where no state repeats, all are kept in
step.

An execution is followed as always, but that at the end of every period, before the last operation of it that others may
notice, the window is at ``rest``, so that nothing but what a form shows is carried over. Which operation of a period it
is makes no difference to the argument. Before the last one M is smallest: the agent is still in its loop there with as
many rounds as it has begun, and behind it only with more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mcheck.answers.judgement import assumptions, judged
from mcheck.answers.result import Answer
from mcheck.answers.several import together
from mcheck.cat.ast import Model
from mcheck.executor.tensor import extent
from mcheck.findings import catalogue
from mcheck.kernel import engine, garbage
from mcheck.kernel.agent import Agent
from mcheck.kernel.agents import Split, partition
from mcheck.kernel.beginnings import Unshared
from mcheck.kernel.canonical import Form, Forms, rest
from mcheck.kernel.copies import copy_of
from mcheck.kernel.joints import LOCAL, Joint
from mcheck.kernel.late_looks import sees_what_follows
from mcheck.kernel.machine import Machine
from mcheck.kernel.needed import contents_decide
from mcheck.kernel.numbers import Enough, Numbers, Stand, Suffices
from mcheck.kernel.reordering import beyond
from mcheck.kernel.running import Pick, execute, lowest, to_its_end
from mcheck.kernel.setup import NewMbarrier, NewOrder, NewWord, Setup, prepare
from mcheck.kernel.stripes import Loop, Stripes, stripes_of
from mcheck.kernel.unwritten import unwritten
from mcheck.limit import Limit
from mcheck.program import ops
from mcheck.program.expr import Const
from mcheck.program.program import Program
from mcheck.program.rounds import Aperiodic, Rounds

FOLLOWED = (5, 12), (8, 40)
"""So many periods, and rounds ahead of them, are followed: where no state repeats among the few, more."""
MOST_ROUNDS = 400
WORDS = "words that strong operations access, or on which something depends"
FOUND = "something is found"
READS = "the model may hold reads against each other, and those of what nothing writes grow with the rounds"
SEVERAL = "steps that could come in several orders, or to several effects"


@dataclass(frozen=True, slots=True)
class Proof:
    """For every number from ``first`` on, or for one, nothing was found but what ``answer`` has for review; the state
    repeats every ``period`` rounds.

    ``answer`` is that of the programs that were run to their ends, ``executions`` how many were run.
    """

    first: int
    period: int
    answer: Answer
    executions: int
    smaller: Mapping[int, Answer] = field(default_factory=dict)
    """What was found out on the way about numbers below ``first``: those without a finding."""


class _NotYet(Aperiodic):
    """No state has repeated so far."""


class _Repeats(Exception):
    """The execution has come to a form that it was in before."""


def prove(
    program: Program, model: Model, profile: str, unroll: int, limit: Limit, suffices: Suffices | None = None
) -> Proof:
    """The proof for all numbers from one on; for smaller ones, their answers where they are at hand and ``suffices``
    says so.

    Raises ``Aperiodic`` with what is in the way, ``TimeOut`` and ``Unsupported``.
    """
    if program.rounds is None or program.sized is None:
        raise Aperiodic("the program is of one size")
    return _proved(_Prover(program, model, profile, unroll, limit, program.rounds(), suffices), _Prover.all_numbers)


def prove_long(program: Program, model: Model, profile: str, unroll: int, limit: Limit) -> Proof:
    """The proof for a program whose loops run often (``Program.long``); ``first`` is a round from which on the state
    repeats. Raises as ``prove``.
    """
    assert program.long is not None
    return _proved(_Prover(program, model, profile, unroll, limit, program.long.rounds), _Prover.one_number)


def _proved(prover: _Prover, prove: Callable[[_Prover, int], Proof]) -> Proof:
    rounds = prover.rounds
    few, most = (periods * rounds.period + ahead for periods, ahead in FOLLOWED)
    if most > MOST_ROUNDS:
        raise Aperiodic(f"the rounds repeat after {rounds.period} only")
    try:
        with garbage.seldom():
            for count, in_step in ((few, False), (few, True)):
                prover.in_step = in_step
                with suppress(_NotYet):
                    return prove(prover, count)
            prover.in_step = False
            return prove(prover, most)
    except Split:
        raise Aperiodic("lanes that part ways in a later round") from None
    except (NewMbarrier, NewOrder, NewWord):
        raise Aperiodic("objects that are used in a later round only") from None


@dataclass(slots=True)
class _Prover:
    program: Program
    model: Model
    profile: str
    unroll: int
    limit: Limit
    rounds: Rounds
    suffices: Suffices | None = None
    in_step: bool = False
    """Whether no agent goes on to its next period while others can go on in theirs."""
    first: engine.Search = field(init=False)

    def all_numbers(self, count: int) -> Proof:
        """The proof for all numbers."""
        rounds = self.rounds
        count += rounds.least
        whole = self.sized(count)
        fewest = rounds.least + rounds.period
        small = self.sized(fewest)
        setup = self.begin(small, whole)
        loops = self.placed(setup, count) if rounds.place is not None else self.loops(setup, small, count - fewest)
        numbers: Numbers | None = None
        try:
            if self.in_step:
                raise Unshared
            numbers = Numbers(self, setup, fewest, count)
            earlier, later, first, lead = self.repeat(setup, loops, numbers)
        except Unshared:
            numbers = None
            earlier, later, slack, lead = self.repeat(setup, loops)
            first = max(count - rounds.period * slack, rounds.least)
        steps = (later - earlier) * rounds.period
        self.growth(self.sized(first), self.sized(first + rounds.period))
        answers = [
            (None if numbers is None else numbers.answer(number))
            or self.alone(self.setup(self.sized(number)), loops[lead], lead, f"with {self.program.free} = {number}")
            for number in range(first, first + steps)
        ]
        answer = replace(answers[-1], findings=together(answers))
        return Proof(first, steps, answer, len(answers) + 1, {} if numbers is None else numbers.below(first))

    def one_number(self, count: int) -> Proof:
        """The proof for loops that are as long as they are written: what is left out of them adds nothing."""
        rounds, period = self.rounds, self.rounds.period
        kept = rounds.ahead + count
        whole = self.without(kept, period)
        setup = self.begin(self.without(rounds.ahead + period, period), whole)
        loops = self.loops(setup, None, 0, kept)
        states: dict[int, Machine] = {}
        earlier, later, slack, lead = self.repeat(setup, loops, states=states)
        self.growth(whole, whole)
        kept -= period * slack
        steps = (later - earlier) * period
        fewer = self.setup(self.without(kept, steps))
        answer = self.from_there(states[earlier], fewer) or self.alone(fewer, loops[lead], lead, "in the rounds")
        return Proof(kept, steps, answer, 2)

    def from_there(self, m: Machine, setup: Setup) -> Answer | None:
        """The answer about a program that an execution of another one, so far, is one of, too; ``None`` if it has to be
        run from its beginning.
        """
        joint = Joint.of(m.setup, setup)
        if joint is None or not joint.straight or not joint.holds(m, set()):
            return None
        joint.take_over(m, set())
        to_its_end(m)
        return None if m.problems else self.judged(m)

    def begin(self, small: Program, whole: Program) -> Setup:
        """What is to be executed of ``whole``, with the agents of one execution of a ``small`` program of its family;
        raises ``Aperiodic`` where that says that more than a state may decide.
        """
        self.first = engine.Search(small, self.model, self.profile, self.unroll, 1, given=self.limit)
        self.first.run()
        if self.first.unsure is not None:
            raise Aperiodic(self.first.unsure)
        if self.first.words:
            raise Aperiodic(WORDS)
        if self.first.wrong:
            raise Aperiodic(FOUND)
        if self.first.bounded is not None:
            raise Aperiodic(SEVERAL)
        setup = self.setup(whole)
        if setup.reads:
            raise Aperiodic(READS)
        if setup.words:
            raise Aperiodic(WORDS)
        more = self.beyond(setup)
        if more is not None:
            raise Aperiodic(more)
        return setup

    def beyond(self, setup: Setup) -> str | None:
        """Why there may be executions of a program that are no interleaving of its steps."""
        program, needed = setup.program, setup.needed
        return beyond(program, needed, setup.partition, setup.tape) or sees_what_follows(program, needed)

    def sized(self, number: int) -> Program:
        """The program with a number, under the same assumptions."""
        self.limit.check()
        assert self.program.sized is not None
        return replace(self.program.sized(number), assumptions=self.program.assumptions)

    def without(self, kept: int, every: int) -> Program:
        """The program without as many rounds as can be left out behind the first ones, in multiples of a number."""
        self.limit.check()
        assert self.program.long is not None
        found = self.program.long.without(kept, self.rounds.left_out(kept, every))
        return replace(found, assumptions=self.program.assumptions)

    def setup(self, program: Program) -> Setup:
        """A program of this family with the agents that the smallest of it has."""
        known = self.first.setup
        assert known is not None
        whole = {t: k for k, group in enumerate(partition(program)) for t in group}
        if any(len({whole[t] for t in group}) > 1 for group in known.partition):
            raise Split(())
        return prepare(
            program, known.partition, self.model, self.profile, self.unroll, self.limit.check, None, self.first.extra,
            None, {},
        )  # fmt: skip

    def ends(self, setup: Setup, number: int) -> list[int]:
        """Where the rounds that are alike end in the code of each agent; raises ``Aperiodic`` where a loop does not
        run on with the number.
        """
        out = []
        for group in setup.partition:
            if self.rounds.place is not None:
                _, end, length = self.rounds.place(group[0], number)
                out.append(end if length else 0)
                continue
            thread = setup.program.threads[group[0]]
            found = [span for span in thread.rounds if span in self.rounds.loops]
            begins = thread.rounds[found[0]] if len(found) == 1 else (0,)
            last = len(begins) - 1 - self.rounds.loops[found[0]].behind if len(found) == 1 else 0
            out.append(begins[max(last, 0)])
        return out

    def placed(self, setup: Setup, number: int) -> dict[int, Loop]:
        """The loops of the agents, where the program says for each thread and number where they are."""
        assert self.rounds.place is not None
        out = {}
        for k, group in enumerate(setup.partition):
            first, end, length = self.rounds.place(group[0], number)
            out[k] = Loop(first, end, length, first) if length else NO_LOOP
        return out

    def loops(self, setup: Setup, small: Program | None, more: int, kept: int = 0) -> dict[int, Loop]:
        """The loops of the agents: those of their rounds that are alike, of the first ``kept`` where it is given. Where
        there is a ``small`` program they have as many rounds ``more`` as it has.
        """
        cuts, period = self.rounds.loops, self.rounds.period
        missing = (kept, self.rounds.left_out(kept, period)) if kept else (0, 0)
        out = {}
        for k, group in enumerate(setup.partition):
            thread = setup.program.threads[group[0]]
            found = [span for span in thread.rounds if span in cuts]
            if len(found) > 1:
                raise Aperiodic("two loops of one thread", found[1])
            if not found:
                out[k] = NO_LOOP
                continue
            begins, cut = thread.rounds[found[0]], cuts[found[0]]
            last = len(begins) - 1 - cut.behind
            alike = begins[cut.ahead : (min(last, kept) if kept else last) + 1]
            if small is not None and len(small.threads[group[0]].rounds[found[0]]) + more != len(begins):
                raise Aperiodic("how often a loop runs", found[0])
            out[k] = replace(_loop(thread.code, alike, period), begins=begins, cut=cut, missing=missing)
        return out

    def repeat(
        self, setup: Setup, loops: Mapping[int, Loop], numbers: Numbers | None = None,
        states: dict[int, Machine] | None = None,
    ) -> tuple[int, int, int, int]:  # fmt: skip
        """The periods after which the execution is twice in one form, how many periods less would have done, and the
        agent whose periods they are. Where the execution is that of many ``numbers``, instead of the periods the
        smallest of them for which it is the same up to the first of the two.
        The ``states`` after periods are kept where they are asked for.
        """
        contents = contents_decide(setup.program)
        if contents and self.rounds.stored:
            raise Aperiodic("what is stored and may decide something")
        if contents and self.rounds.coordinates:
            raise Aperiodic("coordinates that grow with the rounds, and something depends on memory")
        if contents and self.rounds.written:
            raise Aperiodic("addresses that are written grow with the rounds, and something depends on memory")
        stripes = stripes_of(setup.program, setup, loops, self.rounds)
        for lead in (k for k, loop in loops.items() if loop.length):
            found = self.follow(setup, loops, lead, stripes, Forms(contents=contents), numbers, states)
            if found is not None:
                return *found, lead
        raise Aperiodic("no thread has a loop that runs on")

    def follow(
        self, setup: Setup, loops: Mapping[int, Loop], lead: int, stripes: list[Stripes], forms: Forms,
        numbers: Numbers | None, states: dict[int, Machine] | None,
    ) -> tuple[int, int, int] | None:  # fmt: skip
        """``repeat`` by the periods of one agent; ``None`` if it does not come to its loop."""
        seen: list[tuple[Form | None, int | None]] = []
        events = 0
        found: list[tuple[int, int, int]] = []
        entered: set[int] = set()
        stand = Stand.of(setup) if numbers is None else numbers.stand(setup)

        def place(a: Agent, turn: int) -> object:
            at = stand.at(a)
            return (at - turn * loops[a.index].length, "in its loop") if a.index in entered else at

        def watch(m: Machine) -> None:
            nonlocal events
            _one_way(m)
            turn = len(seen)
            before, events = events, m.window.count
            if found or (not m.window.settled and before < events):
                seen.append((None, None))  # no event has gone: no state with more of them is alike
                return
            moving = [x.moving(turn, _oldest(m, stand, loops, self.rounds.period, entered)) for x in stripes]
            form = forms.of(m, lambda a: place(a, turn), moving)
            places = _places(m, stand, loops, entered if not self.rounds.counted else set(loops))
            mark = None
            if places is not None:
                mark = _spare(places, loops) if numbers is None else numbers.standing(places)
            for k, (other, earlier) in enumerate(seen):
                if earlier is not None and mark is not None and other == form:
                    found.append((k, turn, earlier))
                    if numbers is None:
                        raise _Repeats
                    numbers.between = earlier, mark
                    break
            if states is not None and mark is not None:
                states[turn] = copy_of(m)
            seen.append((form, mark))

        in_periods = _in_periods(stand, loops, lead, watch, entered)
        pick = _in_step(stand, loops) if self.in_step else lowest

        def before(m: Machine, agent: Agent) -> None:
            if numbers is not None:
                numbers.before(m, agent)
                if found and (first := numbers.first(found[0][1] - found[0][0])) is not None:
                    found[0] = *found[0][:2], first
                    raise _Repeats
            in_periods(m, agent)

        try:
            m = execute(setup if numbers is None else numbers.begin(), before=before, pick=pick)
        except _Repeats:
            return found[0]
        except Enough as enough:
            m = enough.machine
        _one_way(m)
        if not seen:
            return None
        raise _NotYet(_difference(m, seen) if len(seen) > 1 else "a loop that does not run on")

    def growth(self, one: Program, more: Program) -> None:
        """Raises ``Aperiodic`` if addresses grow into objects that are written, or that do not grow as much, from one
        program to the next, which may be one and the same.
        """
        read_only = unwritten(one) if self.rounds.growing or self.rounds.coordinates else frozenset()
        for name, by in self.rounds.growing.items():
            small, large = (next(i for i in p.memory.instances if i.object.name == name) for p in (one, more))
            if small.base not in read_only and name not in self.rounds.written:
                raise Aperiodic(f"addresses in {name}, which the program writes, grow with the rounds")
            if one is not more and large.object.size - small.object.size < by:
                raise Aperiodic(f"addresses in {name} grow with the rounds, and its size does not")
            if large.object.held or (large.object.init is not None and large.object.init.strip(b"\0")):
                raise Aperiodic(f"addresses in {name}, whose contents are not the same all over, grow with the rounds")
        if self.rounds.coordinates:
            _no_tile_matters(one, read_only)

    def alone(self, setup: Setup, loop: Loop, lead: int, which: str) -> Answer:
        """The answer about one of the programs, from its one execution; raises ``Aperiodic`` if it has an error.

        What is for review stops no agent, so that it shows with every larger number as it shows here.
        """
        at_rest = _in_periods(Stand.of(setup), {lead: loop}, lead, lambda _: None, set())
        given = self.judged(execute(setup, before=at_rest, pick=lowest))
        if given is None:
            raise Aperiodic(f"{FOUND} {which}")
        return given

    def judged(self, m: Machine) -> Answer | None:
        """The answer about a program from its one execution, ``None`` if that has an error; raises ``Aperiodic`` if it
        could have gone another way.
        """
        _one_way(m)
        search = engine.Search(m.program, self.model, self.profile, self.unroll)
        search.collect(m)
        given = judged(
            Answer(
                verdict="pass", findings=search.found(),
                assumptions=(*assumptions(m.program), engine.INTERLEAVED), executions=1, engine="protocol",
            )
        )  # fmt: skip
        ended = m.ended == "end" and all(a.status == "done" for a in m.agents)
        return given if ended and not search.errors and given.verdict in ("proved", "finding") else None


NO_LOOP = Loop(0, 0, 0)


def _loop(code: tuple[ops.Op, ...], alike: tuple[int, ...], period: int) -> Loop:
    """A loop whose rounds begin at these places in the code; raises ``Aperiodic`` where that is not what the text
    says.
    """
    if len(alike) < 2 * period + 1:
        raise Aperiodic("a loop that does not run on")
    first, length = alike[0], alike[period] - alike[0]
    end = alike[(len(alike) - 1) // period * period]
    for before, after in zip(alike, alike[period:], strict=False):
        if after - before != length:
            raise Aperiodic("rounds of another length")
    for pc in range(first, end - length):
        one, other = code[pc], code[pc + length]
        if one is not other and (type(one), one.span) != (type(other), other.span):
            raise Aperiodic("rounds that are not alike", one.span)
    start = next((pc for pc in range(first, first + length) if not isinstance(code[pc], LOCAL)), None)
    if start is None:
        return NO_LOOP
    return Loop(start, end, length, first)


def _no_tile_matters(program: Program, read_only: frozenset[int]) -> None:
    """Raises ``Aperiodic`` unless a load by a tensor map is legal, and in nobody's way, wherever its tile is."""
    for op in program.operations:
        if not isinstance(op, ops.TensorCopy):
            continue
        where = op.tensor_map.value if isinstance(op.tensor_map, Const) else None
        instance = None if where is None else program.memory.find(where)
        maps = () if instance is None or instance.base not in read_only else instance.object.tensor_map
        if not maps:
            raise Aperiodic("coordinates that grow with the rounds, of a map that is not known", op.span)
        for spec in maps:
            low, size = extent(spec)
            inside = program.memory.find(low)
            tile = op.mode == "tile" and spec.interleave_layout == "none"
            whole = inside is not None and low + size <= inside.base + inside.object.size
            if not tile or not whole or inside is None or inside.base not in read_only:
                raise Aperiodic("coordinates that grow with the rounds", op.span)


def _in_periods(
    stand: Stand, loops: Mapping[int, Loop], lead: int, watch: Callable[[Machine], None], entered: set[int]
) -> Callable[[Machine, Agent], None]:
    """What puts a machine at rest whenever the leading agent comes to the last operation of a period that others may
    notice, and shows it then; adds the agents that have come to their loops to ``entered``.

    It stands in the loop of a program without the next period, too, as the first operation of that does not.
    """
    periods = 0
    loop = loops[lead]
    last = _last(stand.code[lead], loop)

    def before(m: Machine, agent: Agent) -> None:
        nonlocal periods
        mine = loops.get(agent.index)
        if mine is not None and mine.first <= stand.at(agent) < mine.end:
            entered.add(agent.index)
        if agent.index != lead or lead not in entered:
            return
        if stand.next(agent) < last + periods * loop.length:
            return
        periods += 1
        rest(m)
        watch(m)

    return before


def _in_step(stand: Stand, loops: Mapping[int, Loop]) -> Pick:
    """Who goes next where all go on period by period: who is in the earliest one, those before their loops first."""

    def period(agent: Agent) -> float:
        loop, at = loops[agent.index], stand.at(agent)
        if not loop.length or at >= loop.end:
            return math.inf
        return (at - loop.first) // loop.length

    def pick(m: Machine) -> Agent | None:
        return min((a for a in m.agents if a.status == "run"), key=period, default=None)

    return pick


def _last(code: tuple[ops.Op, ...], loop: Loop) -> int:
    """The last operation of the first period of a loop that is not local; it may be one that is skipped."""
    end = loop.first + loop.length
    return next(pc for pc in range(end - 1, loop.start - 1, -1) if not isinstance(code[pc], LOCAL))


def _places(m: Machine, stand: Stand, loops: Mapping[int, Loop], entered: set[int]) -> dict[int, int] | None:
    """Where the agents stand in their loops; ``None`` if some are not in theirs, but for those that have not
    ``entered`` one and are past it.
    """
    places: dict[int, int] = {}
    for agent in m.agents:
        loop = loops[agent.index]
        if not loop.length or (agent.index not in entered and stand.at(agent) >= loop.end):
            continue
        if not loop.start <= (at := stand.next(agent)) < loop.end:
            return None
        if agent.status not in ("run", "blocked", "standing"):
            return None
        places[agent.index] = at
    return places


def _spare(places: Mapping[int, int], loops: Mapping[int, Loop]) -> int:
    """How many periods less would have left all agents in their loops."""
    return min((loops[k].end - at - 1) // loops[k].length for k, at in places.items())


def _oldest(m: Machine, stand: Stand, loops: Mapping[int, Loop], period: int, entered: set[int]) -> int:
    """The earliest period that some agent is still in."""
    return min(
        max(stand.next(a) - x.first, 0) // x.length + (x.cut.low + x.cut.ahead) // period
        for a in m.agents
        if (x := loops[a.index]).length and (a.index in entered or stand.at(a) < x.end)
    )


def _one_way(m: Machine) -> None:
    """Raises ``Aperiodic`` if an execution could have gone another way, or has found something that decides."""
    if m.reversals or m.guesses or m.coarse or any(entry.choices for entry in m.trace):
        raise Aperiodic(SEVERAL)
    if m.impossible is not None or m.bounded or m.overtaken or m.unsure is not None or m.words:
        raise Aperiodic(m.unsure or "an execution that is not followed in full")
    if any(catalogue.get(p.code).severity("ptx") == "error" for p in m.problems):
        raise Aperiodic(FOUND)


def _difference(m: Machine, seen: list[tuple[Form | None, int | None]]) -> str:
    """In what the last two of the states differ, in words."""
    one, other = seen[-2][0], seen[-1][0]
    for agent, before, after in zip(m.agents, one.agents, other.agents, strict=True) if one and other else ():
        if before.place != after.place:
            return f"how far {m.name(agent)} is, beside the others"
        for lane, (first, then) in enumerate(zip(before.lanes, after.lanes, strict=True)):
            for (name, value), (_, changed) in zip(first.registers, then.registers, strict=False):
                if value != changed:
                    return f"register {name} of {m.name(agent, lane)}, which is {value} and a period later {changed}"
    return "the state of the program, of which no two are alike at the ends of periods"
