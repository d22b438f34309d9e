"""Proofs for every number of rounds: a program with a constant N that is any number, at all numbers from one on.

The text says that code is alike in rounds a period apart (``mcheck.program.rounds``). One execution is followed until,
at the start of a round of one agent, it is in the same canonical form (``mcheck.kernel.canonical``) as some periods
before, all agents standing in their loops, as many rounds further on. So far nothing could have gone another way: no
reversal and no choice was noted. Let p be the rounds between the two, and M a number for which all agents are still in
their loops at the earlier one.

The programs with M, M + 1, ... M + p - 1 are run to their ends, epilogues included. Where each of them has this one
execution, without a finding, so has the program with any larger number N, by induction: up to the later one of the two
states it does what was seen, whatever N is, for no agent leaves its loop before. From there on it has before it what
the program with N - p has before it at the earlier one: code alike, in a form alike. So it goes on as that one does,
which has one execution without a finding.

An execution is followed as always, but that at the start of every period the window is at ``rest``, so that nothing but
what a form shows is carried over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mcheck.answers.judgement import judged
from mcheck.answers.result import Answer
from mcheck.cat.ast import Model
from mcheck.findings import catalogue
from mcheck.kernel import engine
from mcheck.kernel.agents import Split, partition
from mcheck.kernel.canonical import Form, Forms, rest
from mcheck.kernel.late_looks import sees_later_copies
from mcheck.kernel.machine import Agent, Machine
from mcheck.kernel.needed import contents_decide
from mcheck.kernel.reordering import beyond
from mcheck.kernel.running import execute
from mcheck.kernel.setup import NewMbarrier, NewWord, Setup, prepare
from mcheck.kernel.stripes import Loop, Stripes, stripes_of
from mcheck.kernel.unwritten import unwritten
from mcheck.limit import Limit
from mcheck.program import ops
from mcheck.program.program import Program
from mcheck.program.rounds import Aperiodic, Rounds

PERIODS = 8
"""So many periods are followed at most, and ``AHEAD`` rounds."""
AHEAD = 40
MOST_ROUNDS = 400
WORDS = "words that strong operations access, or on which something depends"
FOUND = "something is found"
SEVERAL = "steps that could come in several orders, or to several effects"


@dataclass(frozen=True, slots=True)
class Proof:
    """For every number from ``first`` on nothing was found; the state repeats every ``period`` rounds.

    ``answer`` is that of one of the programs that were run to their ends, ``executions`` how many were run.
    """

    first: int
    period: int
    answer: Answer
    executions: int


class _Repeats(Exception):
    """The execution has come to a form that it was in before."""


def prove(program: Program, model: Model, profile: str, unroll: int, limit: Limit) -> Proof:
    """The proof for all numbers from one on.

    Raises ``Aperiodic`` with what is in the way, ``TimeOut`` and ``Unsupported``.
    """
    if program.rounds is None or program.sized is None:
        raise Aperiodic("the program is of one size")
    rounds = program.rounds()
    count = PERIODS * rounds.period + AHEAD
    if count > MOST_ROUNDS:
        raise Aperiodic(f"the rounds repeat after {rounds.period} only")
    try:
        return _Prover(program, model, profile, unroll, limit, rounds).prove(count)
    except Split:
        raise Aperiodic("lanes that part ways in a later round") from None
    except (NewMbarrier, NewWord):
        raise Aperiodic("objects that are used in a later round only") from None


@dataclass(slots=True)
class _Prover:
    program: Program
    model: Model
    profile: str
    unroll: int
    limit: Limit
    rounds: Rounds
    first: engine.Search = field(init=False)

    def prove(self, count: int) -> Proof:
        period = self.rounds.period
        small = self.sized(period)
        self.first = engine.Search(small, self.model, self.profile, self.unroll, 1, given=self.limit)
        self.first.run()  # one execution, from which the agents are taken
        if self.first.unsure is not None:
            raise Aperiodic(self.first.unsure)
        if self.first.words:
            raise Aperiodic(WORDS)
        if self.first.wrong:
            raise Aperiodic(FOUND)
        if self.first.bounded is not None:
            raise Aperiodic(SEVERAL)
        whole, before = self.sized(count), self.sized(count - period)
        setup = self.setup(whole)
        if setup.words:
            raise Aperiodic(WORDS)
        more = beyond(whole, setup.needed, setup.partition) or sees_later_copies(whole, setup.needed)
        if more is not None:
            raise Aperiodic(more)
        contents = contents_decide(whole)
        if contents and self.rounds.stored:
            raise Aperiodic("what is stored and may decide something")
        loops = self.loops(setup, before, count)
        lead = next((k for k, loop in enumerate(loops) if loop.length), None)
        if lead is None:
            raise Aperiodic("no thread has a loop")
        if contents and self.rounds.written:
            raise Aperiodic("addresses that are written grow with the rounds, and something depends on memory")
        stripes = stripes_of(whole, setup, loops, self.rounds.written)
        earlier, later, slack = self.repeat(setup, loops, lead, Forms(contents=contents), stripes)
        first = count - period * slack
        steps = (later - earlier) * period
        self.growth(first)
        answers = [self.alone(number, loops[lead], lead) for number in range(first, first + steps)]
        return Proof(first, steps, answers[-1], len(answers) + 1)

    def sized(self, number: int) -> Program:
        """The program with a number, under the same assumptions."""
        self.limit.check()
        assert self.program.sized is not None
        return replace(self.program.sized(number), assumptions=self.program.assumptions)

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

    def loops(self, setup: Setup, before: Program, number: int) -> list[Loop]:
        """The loops of the agents in the program with a number, ``before`` being that with a period less."""
        out = []
        for group in setup.partition:
            if self.rounds.place is not None:
                first, end, length = self.rounds.place(group[0], number)
                out.append(Loop(first, end, length, first) if length else Loop(0, 0, 0))
                continue
            thread = setup.program.threads[group[0]]
            spans = self.rounds.bodies.get(thread.role, frozenset())
            inside = [k for k, op in enumerate(thread.code) if op.span in spans]
            noticed = [k for k in inside if not isinstance(thread.code[k], ops.Label | ops.Alu)]
            if not inside or not noticed:
                out.append(Loop(0, 0, 0))
                continue
            length = len(thread.code) - len(before.threads[group[0]].code)
            out.append(Loop(noticed[0], inside[-1] + 1, length, inside[0]))
        return out

    def repeat(
        self, setup: Setup, loops: list[Loop], lead: int, forms: Forms, stripes: list[Stripes]
    ) -> tuple[int, int, int]:
        """The periods after which the execution is twice in one form, and how many periods less would have done."""
        seen: list[tuple[Form, int | None]] = []
        found: list[tuple[int, int, int]] = []

        def watch(m: Machine) -> None:
            _one_way(m)
            turn = len(seen)
            moving = [x.moving(turn, _oldest(m, loops)) for x in stripes]
            form = forms.of(m, lambda a: a.pc - turn * loops[a.index].length, moving)
            spare = _spare(m, loops)
            for k, (other, slack) in enumerate(seen):
                if slack is not None and spare is not None and other == form:
                    found.append((k, turn, slack))
                    raise _Repeats
            seen.append((form, spare))

        try:
            m = execute(setup, before=_at_starts(loops[lead], lead, watch))
        except _Repeats:
            return found[0]
        _one_way(m)
        raise Aperiodic(_difference(m, seen) if len(seen) > 1 else "a loop that does not run on")

    def growth(self, number: int) -> None:
        """Raises ``Aperiodic`` if addresses grow into objects that are written, or that do not grow as much."""
        one, more = self.sized(number), self.sized(number + self.rounds.period)
        read_only = unwritten(one) if self.rounds.growing else frozenset()
        for name, by in self.rounds.growing.items():
            small, large = (next(i for i in p.memory.instances if i.object.name == name) for p in (one, more))
            if small.base not in read_only and name not in self.rounds.written:
                raise Aperiodic(f"addresses in {name}, which the program writes, grow with the rounds")
            if large.object.size - small.object.size < by:
                raise Aperiodic(f"addresses in {name} grow with the rounds, and its size does not")
            if any(large.object.init or b""):
                raise Aperiodic(f"addresses in {name}, whose contents are not the same all over, grow with the rounds")

    def alone(self, number: int, loop: Loop, lead: int) -> Answer:
        """The answer about one of the programs; raises ``Aperiodic`` unless it is a proof, from one execution."""
        setup = self.setup(self.sized(number))
        m = execute(setup, before=_at_starts(loop, lead, lambda _: None))
        _one_way(m)
        search = engine.Search(setup.program, self.model, self.profile, self.unroll)
        search.collect(m)
        given = judged(Answer(verdict="pass", findings=search.found(), executions=1, engine="protocol"))
        if m.ended != "end" or given.verdict != "proved" or any(a.status != "done" for a in m.agents):
            raise Aperiodic(f"{FOUND} with {self.program.free} = {number}")
        return given


def _at_starts(loop: Loop, lead: int, watch: Callable[[Machine], None]) -> Callable[[Machine, Agent], None]:
    """What puts a machine at rest whenever the leading agent starts a period, and shows it then."""
    periods = 0

    def before(m: Machine, agent: Agent) -> None:
        nonlocal periods
        if agent.index != lead or _next(agent) != loop.start + periods * loop.length:
            return
        periods += 1
        rest(m)
        watch(m)

    return before


def _next(agent: Agent) -> int:
    """Where the next operation of an agent stands that is not local."""
    pc = agent.pc
    while pc < len(agent.code) and isinstance(agent.code[pc], ops.Label | ops.Alu):
        pc += 1
    return pc


def _spare(m: Machine, loops: list[Loop]) -> int | None:
    """How many periods less would have left all agents in their loops; ``None`` if some are not in theirs."""
    spare: list[int] = []
    for agent, loop in zip(m.agents, loops, strict=True):
        if not loop.length:
            continue
        if not loop.start <= (at := _next(agent)) < loop.end or agent.status not in ("run", "blocked", "standing"):
            return None
        spare.append((loop.end - at - 1) // loop.length)
    return min(spare)


def _oldest(m: Machine, loops: list[Loop]) -> int:
    """The earliest period that some agent is still in."""
    return min((_next(a) - x.first) // x.length for a, x in zip(m.agents, loops, strict=True) if x.length)


def _one_way(m: Machine) -> None:
    """Raises ``Aperiodic`` if an execution could have gone another way, or has found something that decides."""
    if m.reversals or m.guesses or m.coarse or any(entry.choices for entry in m.trace):
        raise Aperiodic(SEVERAL)
    if m.impossible is not None or m.bounded or m.overtaken or m.unsure is not None or m.words:
        raise Aperiodic(m.unsure or "an execution that is not followed in full")
    if any(catalogue.get(p.code).severity("ptx") == "error" for p in m.problems):
        raise Aperiodic(FOUND)


def _difference(m: Machine, seen: list[tuple[Form, int | None]]) -> str:
    """In what the last two of the states differ, in words."""
    one, other = seen[-2][0], seen[-1][0]
    for agent, before, after in zip(m.agents, one.agents, other.agents, strict=True):
        if before.place != after.place:
            return f"how far {m.name(agent)} is, beside the others"
        for lane, (first, then) in enumerate(zip(before.lanes, after.lanes, strict=True)):
            for (name, value), (_, changed) in zip(first.registers, then.registers, strict=False):
                if value != changed:
                    return f"register {name} of {m.name(agent, lane)}, which is {value} and a period later {changed}"
    return "the state of the program, of which no two are alike at the starts of periods"
