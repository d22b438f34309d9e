"""One execution: the agents' code run step by step, with what each step learns, touches and signals.

Operations are decoded into events by the emitters of ``mcheck.explore``, so that operands are checked in one place;
what the events do to memory, clocks and objects is done here and in the modules beside this one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.errors import Unsupported
from mcheck.explore.emit import HANDLERS, Emitter, Stop
from mcheck.explore.state import State
from mcheck.graph.event import Event
from mcheck.graph.terms import Term, Uid, typed
from mcheck.program.expr import Expr
from mcheck.program.ops import Op
from mcheck.protocol.agents import Split
from mcheck.protocol.clocks import Key, Know, Vector, join_coverage, joined, raised
from mcheck.protocol.history import History, Lanes, Record, View
from mcheck.protocol.objects import Done, Handed, Mbarrier, Place, Rendezvous, Signal, Word
from mcheck.protocol.problems import Problem
from mcheck.protocol.setup import Setup
from mcheck.protocol.values import Memory

MAX_STEPS = 3_000_000

Choices = tuple[tuple[int, int], ...]
"""Choices made in one step: (taken, of how many)."""
Forced = tuple[tuple[object, tuple[int, ...]], ...]
"""Steps to replay: who, and which choices."""


class Undefined(Exception):
    """The execution ends here: a precondition is violated."""


class Blocked(Exception):
    """The agent cannot go on; ``where`` is what it waits for."""

    def __init__(self, where: object) -> None:
        super().__init__("blocked")
        self.where = where


@dataclass(slots=True)
class Agent:
    """Lanes that run together, their place in the code, what they know."""

    index: int
    threads: tuple[int, ...]
    lanes: list[State]
    emitters: list[Emitter]
    code: tuple[Op, ...]
    place: Place
    causal: Vector
    time: Vector
    coverage: dict[Key, Vector] = field(default_factory=dict)
    fenced: dict[Key, int] = field(default_factory=dict)
    pc: int = 0
    step: int = 0
    status: str = "run"
    where: object = None
    releases: Handed = field(default_factory=dict)
    pending: Handed = field(default_factory=dict)
    pending_seen: dict[int, int] = field(default_factory=dict)
    spaces: dict[object, Know] = field(default_factory=dict)
    inits: dict[int, int] = field(default_factory=dict)
    of_event: dict[tuple[int, Uid], Record] = field(default_factory=dict)
    tracked: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    wgmma: View | None = None
    """What its last wgmma.fence ordered before the wgmma that follow."""
    wgmma_reads: list[list[Record]] = field(default_factory=list)
    wgmma_numbers: dict[Uid, int] = field(default_factory=dict)
    met: Know | None = None
    """What the lanes of its warp knew when they met at an aligned instruction that it is about to carry out."""
    released_words: dict[int, Handed] = field(default_factory=dict)
    last_read: dict[int, int] = field(default_factory=dict)
    cluster_arrived: Rendezvous | None = None
    visits: dict[int, tuple[object, int, int]] = field(default_factory=dict)
    effects: int = 0
    looked: dict[object, int] = field(default_factory=dict)
    spinning: bool = False
    exit_time: Vector | None = None
    aligned: int = 0
    """Aligned barriers executed so far."""

    @property
    def single(self) -> bool:
        """Whether this is one thread."""
        return len(self.threads) == 1

    def view(self) -> View:
        """What the agent knows at its present step."""
        return View(self.index, self.step, self.single, self.causal, self.coverage, self.fenced)

    def know(self) -> Know:
        """What a release hands over: all that the lanes know, their own operations included."""
        coverage = self.coverage
        if self.fenced:
            coverage = dict(coverage)
            done: dict[tuple[int, int], Vector] = {}
            for key, step in self.fenced.items():
                vector = coverage.get(key)
                pair = id(vector), step
                if pair not in done:
                    done[pair] = raised(vector, self.index, step) if vector is not None else self._only(step)
                coverage[key] = done[pair]
        return Know(raised(self.causal, self.index, self.step), coverage)

    def _only(self, step: int) -> Vector:
        vector = [0] * len(self.causal)
        vector[self.index] = step
        return vector

    def now(self) -> Vector:
        """The agent's time, its own steps included."""
        return raised(self.time, self.index, self.step)

    def learn(self, know: Know) -> None:
        """Takes what was handed over."""
        self.causal = joined(self.causal, know.causal)
        self.coverage = join_coverage(self.coverage, know.coverage)


@dataclass(slots=True)
class Entry:
    """A step of the trace."""

    who: object
    agent: int
    step: int
    time: Vector
    op: Op
    choices: list[tuple[int, int]] = field(default_factory=list)
    note: str = ""
    signal: int = -1
    phase: int = 0
    guess: int | None = None
    """The way that was taken where what decides is not known."""


Reversal = tuple[int, tuple[Entry, ...], int]
"""The position of a step, those that may come before it instead, how far the trace had come."""
Doer = Callable[["Machine", Agent, Op], None]
DOERS: dict[type[Op], Doer] = {}


def does(*kinds: type[Op]) -> Callable[[Doer], Doer]:
    """Registers the function that executes operations of these kinds."""

    def register(doer: Doer) -> Doer:
        for kind in kinds:
            DOERS[kind] = doer
        return doer

    return register


class Machine:
    """One execution, forced along a prefix and then by the usual order: signals first, then whoever ran last."""

    def __init__(self, setup: Setup, forced: Forced = ()) -> None:
        self.setup = setup
        self.forced = forced
        self.program = setup.program
        size = setup.components
        zero = [0] * size
        self.zero = zero
        self.memory = Memory(setup.program)
        self.agents = [self._agent(k, group, zero) for k, group in enumerate(setup.partition)]
        self.names = {t: k for k, group in enumerate(setup.partition) for t in group}
        self.trace: list[Entry] = []
        self.signals: dict[tuple[int, int, int], Signal] = {}
        self.queue: deque[tuple[int, int, int]] = deque()
        self.problems: list[Problem] = []
        self.reversals: list[Reversal] = []
        self.assigned: list[object] = []
        self.coarse: set[int] = set()
        self.histories: dict[int, History] = {}
        self.words: dict[int, Word] = {}
        self.meetings: dict[tuple[object, ...], Rendezvous] = {}
        self.sc_fences: list[tuple[str, Done, Know]] = []
        self.remote: dict[tuple[int, int, int], tuple[Record | Done, Event]] = {}
        self.copies: list[tuple[Record, Event]] = []
        self.reported: set[object] = set()
        self.aligned: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.tokens: set[tuple[int, int]] = set()
        self.unsure: str | None = None
        self.inexact: str | None = None
        """Why the values of this execution may not be those of an execution of the model."""
        self.guesses = 0
        self.absent = False
        """Whether a barrier was passed because a thread had exited, which orders nothing but in time."""
        self.bounded = False
        self.ended = "end"
        base = len(setup.partition)
        self.mbarriers: dict[int, Mbarrier] = {}
        for k, address in enumerate(setup.mbarriers):
            self.mbarriers[address] = Mbarrier(
                address, self.label(address), base + 2 * k, base + 2 * k + 1, time=zero, next_time=zero
            )
        self.mbarrier_places = sorted(self.mbarriers)

    def _agent(self, k: int, group: tuple[int, ...], zero: Vector) -> Agent:
        threads = [self.program.threads[t] for t in group]
        emitters = [Emitter(self.program, t, self.setup.semantics, self.map_contents) for t in threads]
        lanes = [e.start() for e in emitters]
        return Agent(k, group, lanes, emitters, threads[0].code, self.setup.places[k], zero, zero)

    def map_contents(self, uid: Uid, state: State) -> tuple[int, ...]:
        """The bytes that a tensor copy finds where its map should be."""
        event = state.events[uid[1]]
        value = self.memory.load(event.address, event.size)
        if value is None:
            raise Unsupported("a tensor map with unknown contents")
        return (value,)

    # --- names --------------------------------------------------------------------------------------------

    def label(self, address: int) -> str:
        """The object at an address, with the element or the offset."""
        instance = self.program.memory.find(address)
        if instance is None:
            return hex(address)
        offset = address - instance.base
        item = instance.object
        if not offset and not item.dims:
            return instance.label
        if item.dims and item.elem_size and offset % item.elem_size == 0 and len(item.dims) == 1:
            at = f"@{instance.cta.rank}" if instance.cta is not None else ""
            return f"{item.name}[{offset // item.elem_size}]{at}"
        return f"{instance.label} + {offset}" if offset else instance.label

    def name(self, agent: Agent, lane: int | None = None) -> str:
        """How results call a thread, or the lanes of an agent."""
        threads = self.program.threads
        if lane is not None or agent.single:
            return threads[agent.threads[lane or 0]].name
        first, last = threads[agent.threads[0]], threads[agent.threads[-1]]
        return f"{first.role}[{first.number}..{last.number}]"

    def warp_of(self, agent: Agent) -> tuple[int, int]:
        """The CTA and the warp of an agent."""
        return self.program.threads[agent.threads[0]].place.own_warp

    # --- running --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs to the end, to a deadlock or to undefined behaviour."""
        current = 0
        step = 0
        for who, choices in self.forced:
            self._leave()
            if isinstance(who, tuple):
                if who in self.signals:
                    self._deliver(who, choices)
            elif isinstance(who, int) and self.agents[who].status == "run":
                self._step(self.agents[who], choices)
                current = who
        count = len(self.agents)
        while True:
            step += 1
            if step % 512 == 0:
                self.setup.deadline()
            if step > MAX_STEPS:
                self.bounded = True
                self.ended = "cut"
                return
            if self.queue:
                key = self.queue.popleft()
                if key in self.signals:
                    self._deliver(key, ())
                continue
            agent = self.agents[current]
            if agent.status != "run":
                for k in range(1, count + 1):
                    agent = self.agents[(current + k) % count]
                    if agent.status == "run":
                        current = agent.index
                        break
                else:
                    from mcheck.protocol.barriers import complete_late

                    if self.ended == "end" and complete_late(self):
                        continue
                    self._finish()
                    return
            self._step(agent, ())

    def _leave(self) -> None:
        """Lets the agents exit that have nothing left to do: no step of the trace says when they did."""
        for agent in self.agents:
            if agent.status == "run" and agent.pc >= self.setup.tails[agent.index]:
                self._step(agent, ())

    def _step(self, agent: Agent, choices: tuple[int, ...]) -> None:
        """The next operation of an agent; blocks it where it cannot be done now."""
        from mcheck.protocol.control import skip

        try:
            op = skip(self, agent)
        except Stop as stop:
            self.problem(stop.misstep.code, stop.misstep.message, agent, stop.misstep.op)
            agent.status = "undefined"
            return
        if op is None:
            return
        agent.step += 1
        entry = Entry(agent.index, agent.index, agent.step, agent.time, op, [(c, -1) for c in choices])
        self.trace.append(entry)
        self._taken = 0
        try:
            doer = DOERS.get(type(op))
            if doer is None:
                raise Unsupported(f"{type(op).__name__} is not followed by the protocol engine")
            doer(self, agent, op)
            entry.time = agent.time
        except Blocked as blocked:
            self.trace.pop()
            agent.step -= 1
            agent.status, agent.where = "blocked", blocked.where
        except Stop as stop:  # the emitters' word for undefined behaviour
            self.problem(stop.misstep.code, stop.misstep.message, agent, op)
            agent.status = "undefined"
        except Undefined:
            agent.status = "undefined"  # it goes no further; the others may

    def _deliver(self, key: tuple[int, int, int], choices: tuple[int, ...]) -> None:
        from mcheck.protocol.mbarriers import deliver

        signal = self.signals.pop(key)
        entry = Entry(key, signal.agent, signal.step, signal.time, signal.event.op, [(c, -1) for c in choices])
        entry.note = "completes"
        self.trace.append(entry)
        self._taken = 0
        try:
            deliver(self, signal, entry)
        except Undefined:
            self.ended = "undefined"

    def choose(self, count: int) -> int:
        """One of ``count`` ways to go on; the others are explored later."""
        choices = self.trace[-1].choices
        k = self._taken
        self._taken += 1
        if k < len(choices):
            taken = min(choices[k][0], count - 1)
            choices[k] = (taken, -1)
        else:
            taken = 0
            choices.append((0, count))
        self.assigned.append((self.trace[-1].agent, self.trace[-1].step, "ways", count))
        return taken

    def wake(self, where: object) -> None:
        """Lets those who wait for ``where`` try again."""
        for agent in self.agents:
            if agent.status == "blocked" and (agent.where is where or isinstance(agent.where, list)):
                agent.status, agent.where = "run", None

    def _finish(self) -> None:
        from mcheck.protocol.endings import finish

        finish(self)

    # --- findings ---------------------------------------------------------------------------------------------

    def problem(
        self, code: str, message: str, agent: Agent | None, op: Op, event: Event | None = None, missing: str = ""
    ) -> None:
        """Undefined behaviour of one operation."""
        self.problems.append(Problem.of_operation(self, code, message, agent, op, event, missing))

    # --- operands ---------------------------------------------------------------------------------------------

    def term(self, agent: Agent, lane: int, expr: Expr) -> Term:
        """The value of an operand for one lane."""
        return agent.emitters[lane].term(expr, agent.lanes[lane])

    def uniform(self, agent: Agent, expr: Expr) -> Term:
        """The value of an operand that all lanes must agree on; splits the agent where they do not."""
        first = self.term(agent, 0, expr)
        if agent.single or (not hasattr(expr, "name") and not hasattr(expr, "op")):
            return first
        values = [first] + [self.term(agent, k, expr) for k in range(1, len(agent.lanes))]
        if any(v != first and not (isinstance(v, tuple) and isinstance(first, tuple)) for v in values):
            groups: dict[object, list[int]] = {}
            for thread, value in zip(agent.threads, values, strict=True):
                groups.setdefault(value if isinstance(value, int) else None, []).append(thread)
            raise Split([tuple(g) for g in groups.values()])
        return first

    def known(self, agent: Agent, expr: Expr | None) -> int | None:
        """``uniform`` of an operand that must have a value."""
        if expr is None:
            return None
        value = self.uniform(agent, expr)
        if not isinstance(value, int):
            raise Unsupported("an address, a size or a barrier depends on a value that is not known")
        return value

    def truth(self, value: Term) -> bool:
        """Whether a condition holds; both ways are explored if it depends on what nobody knows."""
        if isinstance(value, int):
            return bool(value)
        taken = self.trace[-1].guess = self.choose(2)
        self.assigned.append(("guess", self.trace[-1].agent, self.trace[-1].step, taken))
        self.guesses += 1
        if self.guesses > 1:
            self.inexact = "several branches depend on contents that nothing has written"
        return taken == 0

    def emit(self, agent: Agent, lane: int, op: Op) -> list[Event]:
        """The events of an operation of one lane."""
        emitter, state = agent.emitters[lane], agent.lanes[lane]
        missing = emitter.needs(op, state)
        if missing is not None:
            raise Unsupported("an address, a size or a barrier depends on a value that is not known")
        before = len(state.events)
        state.instruction += 1
        following = HANDLERS[type(op)](emitter, op, state)
        if following[0] is not state:
            state = agent.lanes[lane] = following[0]
        if state.ended == "undefined" and state.misstep is not None:
            raise Stop(state.misstep)
        return state.events[before:]

    def emit_nothing(self, agent: Agent, op: Op) -> Event:
        """An event that only names its operation."""
        return Event((agent.threads[0], 0), op, frozenset(), 0, agent.step, agent.place[2])

    def set(self, agent: Agent, lane: int, name: str, type_name: str, raw: int | None) -> None:
        """Gives a register a value, or an unknown one."""
        state = agent.lanes[lane]
        state.registers[name] = typed(type_name, raw) if raw is not None else ("?", (agent.index, lane, agent.step))

    # --- order in time ------------------------------------------------------------------------------------------

    def reverse(self, earlier: Done, agent: int, time: Vector, single: bool) -> bool:
        """Notes that ``earlier`` could as well come after the present step, unless time orders them; whether it
        could.
        """
        if earlier.signal >= 0:
            if time[earlier.signal] > earlier.phase:
                return False
        elif time[earlier.agent] >= earlier.step:
            return False
        elif earlier.agent == agent:
            if single:
                return False
            threads = self.agents[agent].threads
            raise Split([threads[:1], threads[1:]])
        self.postpone(earlier.position)
        for k in (earlier.agent if earlier.signal < 0 else -1, agent):
            if k >= 0 and not self.agents[k].single:
                self.coarse.add(k)
        return True

    def postpone(self, position: int, others: tuple[int, ...] = (), *, now: bool = True) -> None:
        """The step at ``position`` is to be run after those at ``others``; ``now`` after the present one as well."""
        after = {*others, len(self.trace) - 1} if now else {*others}
        ends = tuple(self.trace[k] for k in sorted(after - {position}))
        self.reversals.append((position, ends, len(self.trace)))

    def history(self, address: int) -> tuple[int, History]:
        """The history of the object at an address."""
        emitter = self.agents[0].emitters[0]
        instance = emitter.instance_at(address)
        assert instance is not None
        found = self.histories.get(instance.base)
        if found is None:
            found = self.histories[instance.base] = History.of(instance.base, instance.object.size)
        return instance.base, found

    def mbarriers_in(self, low: int, high: int) -> list[Mbarrier]:
        """The mbarrier objects that a range of bytes touches."""
        places = self.mbarrier_places
        k = bisect_left(places, low - 7)
        out = []
        while k < len(places) and places[k] < high:
            out.append(self.mbarriers[places[k]])
            k += 1
        return out


def coalesced(found: list[tuple[Event, int, int, int]]) -> list[tuple[Event, int, int, Lanes]]:
    """The accesses of the lanes (event, address, size, lane) as few ranges: one for neighbours, one for the same
    bytes.
    """
    if len(found) == 1:
        event, address, size, _ = found[0]
        return [(event, address, address + size, None)]
    ranges = {(a, s) for _, a, s, _ in found}
    event = found[0][0]
    if len(ranges) == 1:
        return [(event, found[0][1], found[0][1] + found[0][2], None)]
    size = found[0][2]
    base = found[0][1]
    if all(s == size and a == base + k * size for k, (_, a, s, _) in enumerate(found)):
        return [(event, base, base + size * len(found), (base, size))]
    return [(e, a, a + s, lane) for e, a, s, lane in found]
