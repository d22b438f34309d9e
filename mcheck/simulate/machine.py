"""The state of one execution, and the schedule.

Threads run a few instructions each in turn. An asynchronous operation becomes a ``Task``: it reads its source at one
point and writes its destination and signals its completion at a later one, both picked by the schedule, at the latest
when nothing else can go on. Memory is sequentially consistent here; what a weaker order would allow is for the engines
to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from mcheck.errors import Unsupported
from mcheck.executor import mbarrier
from mcheck.executor.behaviour import DOCUMENTED, Behaviour
from mcheck.executor.memory import Memory
from mcheck.executor.misuse import Misuse
from mcheck.findings.finding import Access, Finding
from mcheck.program import ops
from mcheck.program.expr import Binary, Const, Expr, Reg, Unary, apply_binary, apply_unary
from mcheck.program.memory import GLOBAL_BASE, SHARED_BASE, Cta
from mcheck.program.ops import Op
from mcheck.program.program import Program, Thread

Value = int | None
"""A register's value; ``None`` is unknown."""

QUANTA = (1, 2, 4, 16, 64)
"""Instructions that a thread may run before the next one has its turn."""
MAX_STEPS = 20_000_000

MBARRIER = 8


@dataclass(slots=True, eq=False)
class Task:
    """An asynchronous operation in flight. ``fetch`` reads the source, ``finish`` writes and signals."""

    op: Op
    thread: int
    fetch: Callable[[], None]
    finish: Callable[[], None]
    fetched: bool = False
    done: bool = False
    destinations: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Groups:
    """Tasks of one family: not yet committed, and the committed groups, oldest first."""

    open: list[Task] = field(default_factory=list)
    committed: list[list[Task]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Runner:
    """A thread: where it is, its registers, what it waits for."""

    thread: Thread
    registers: dict[str, Value]
    pc: int = 0
    ended: bool = False
    waits: Callable[[], bool] | None = None
    groups: dict[str, Groups] = field(default_factory=dict)
    cp_async: list[Task] = field(default_factory=list)
    cluster_arrived: int | None = None
    known_phase: dict[int, int] = field(default_factory=dict)
    turns: dict[int, tuple[int, set[tuple[Value, ...]]]] = field(default_factory=dict)
    asleep_at: int = -1
    """The number of changes at which the thread was found to repeat itself."""


class Undefined(Exception):
    """Undefined behaviour: the execution ends."""


@dataclass(slots=True)
class Gathering:
    """One generation of a barrier: who has arrived, with which instruction and predicate; who has been let go."""

    arrived: dict[int, tuple[Op, Value]] = field(default_factory=dict)
    number: int = 0


@dataclass(slots=True, eq=False)
class Machine:
    """Everything that changes. ``changes`` counts effects, so that a thread that spins can sleep until there is one."""

    program: Program
    profile: str
    rng: Random
    memory: Memory
    runners: list[Runner]
    barriers: dict[int, mbarrier.State] = field(default_factory=dict)
    waited: dict[int, int] = field(default_factory=dict)
    gatherings: dict[tuple[object, ...], Gathering] = field(default_factory=dict)
    results: dict[tuple[tuple[object, ...], int], int] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    changes: int = 0
    steps: int = 0
    notes: set[str] = field(default_factory=set)
    open_points: set[str] = field(default_factory=set)
    ctas: tuple[Cta, ...] = ()
    how: Behaviour = DOCUMENTED

    # --- operands -----------------------------------------------------------------------------------

    def value(self, runner: Runner, expr: Expr) -> Value:
        """The value of an operand, unknown if one of its registers is."""
        kind = type(expr)
        if kind is Const:
            return expr.value  # type: ignore[union-attr]
        if kind is Reg:
            return runner.registers.get(expr.name, 0 if self.program.dialect else None)  # type: ignore[union-attr]
        if kind is Binary:
            left = self.value(runner, expr.left)  # type: ignore[union-attr]
            right = self.value(runner, expr.right)  # type: ignore[union-attr]
            if left is None or right is None:
                return None
            try:
                return apply_binary(expr.op, left, right)  # type: ignore[union-attr]
            except (ZeroDivisionError, ValueError):
                return None
        assert isinstance(expr, Unary)
        operand = self.value(runner, expr.operand)
        return None if operand is None else apply_unary(expr.op, operand)

    def number(self, runner: Runner, expr: Expr, what: str = "operand") -> int:
        """An operand that decides what the instruction touches; it must be known."""
        value = self.value(runner, expr)
        if value is None:
            op = runner.thread.code[runner.pc]
            raise Unsupported(f"the {what} of '{op.text}' depends on contents that nothing has written", op.span)
        return value

    def address(self, runner: Runner, expr: Expr, what: str = "address", space: str = "shared") -> int:
        """An address operand. A 32-bit register holds a shared address without the upper half of its window."""
        value = self.number(runner, expr, what)
        if 0 <= value < GLOBAL_BASE and space.startswith("shared"):
            return value + SHARED_BASE
        return value

    def maybe(self, runner: Runner, expr: Expr | None, what: str = "operand") -> int | None:
        """``number`` of an operand that may be missing."""
        return None if expr is None else self.number(runner, expr, what)

    # --- what is found ------------------------------------------------------------------------------

    def report(self, code: str, message: str, thread: int, op: Op | None, section: str = "") -> None:
        """Adds a finding, once."""
        from mcheck.findings import catalogue

        entry = catalogue.get(code)
        accesses: tuple[Access, ...] = ()
        if op is not None:
            accesses = (Access(thread=self.program.threads[thread].name, instruction=op.text, span=op.span),)
        finding = Finding(
            code=code,
            kind=entry.kind,
            severity=entry.severity(self.profile),
            message=message,
            accesses=accesses,
            missing=entry.remedy,
            section=section or entry.section,
        )
        if finding not in self.findings:
            self.findings.append(finding)

    def undefined(self, misuse: Misuse, thread: int, op: Op) -> Undefined:
        """Reports a violated condition; the execution cannot go on."""
        section = misuse.section if misuse.section.startswith("PTX") else f"PTX ISA 9.0 section {misuse.section}"
        self.report(misuse.code, misuse.message, thread, op, section)
        return Undefined()

    # --- mbarriers ----------------------------------------------------------------------------------

    def live(self, address: int) -> mbarrier.State:
        """The state of the mbarrier object at ``address``."""
        state = self.barriers.get(address)
        if state is None:
            raise Misuse("UB201", f"there is no valid mbarrier object at {address:#x}", "PTX ISA 9.0 section 9.7.13.15")
        return state

    def advance(self, address: int, step: mbarrier.Step) -> None:
        """Stores the state after an operation."""
        self.barriers[address] = step[0]
        self.changes += 1

    def untouched(self, address: int, size: int) -> None:
        """An access that is no mbarrier operation must leave valid mbarrier objects alone (9.7.13.15)."""
        for place in self.barriers:
            if place < address + size and address < place + MBARRIER:
                raise Misuse(
                    "UB202", f"an access touches the mbarrier object at {place:#x}", "PTX ISA 9.0 section 9.7.13.15"
                )

    # --- tasks --------------------------------------------------------------------------------------

    def launch(self, task: Task) -> Task:
        """An asynchronous operation has been issued."""
        self.tasks.append(task)
        self.changes += 1
        return task

    def perform(self, task: Task) -> None:
        """The next half of an asynchronous operation."""
        try:
            if not task.fetched:
                task.fetched = True
                task.fetch()
            else:
                task.done = True
                self.tasks.remove(task)
                task.finish()
        except Misuse as misuse:
            raise self.undefined(misuse, task.thread, task.op) from None
        self.changes += 1

    # --- the schedule -------------------------------------------------------------------------------

    def run(self) -> None:
        """Until every thread has ended and every asynchronous operation is done, or nothing can go on."""
        try:
            while self._round():
                pass
            while self.tasks:
                self.perform(self.rng.choice(self.tasks))
        except Undefined:
            return
        if any(not r.ended for r in self.runners):
            self._stuck()

    def _round(self) -> bool:
        """Every thread that can run has a turn; did anything happen?"""
        order = [r for r in self.runners if not r.ended]
        if not order:
            return False
        self.rng.shuffle(order)
        before = self.changes, self.steps
        for runner in order:
            self._turn(runner)
            while self.tasks and self.rng.random() < 0.25:
                self.perform(self.rng.choice(self.tasks))
        if (self.changes, self.steps) != before:
            return True
        if self.tasks:
            self.perform(self.rng.choice(self.tasks))
            return True
        from mcheck.simulate.barriers import release_partial_warps

        return release_partial_warps(self)

    def _turn(self, runner: Runner) -> None:
        if runner.asleep_at == self.changes:
            return
        for _ in range(self.rng.choice(QUANTA)):
            if runner.ended:
                return
            if runner.waits is not None:
                if not self._may_go_on(runner):
                    return
                runner.waits = None
            self._step(runner)
            if runner.asleep_at == self.changes:
                return

    def _may_go_on(self, runner: Runner) -> bool:
        assert runner.waits is not None
        try:
            return runner.waits()
        except Misuse as misuse:
            op = runner.thread.code[max(runner.pc - 1, 0)]
            raise self.undefined(misuse, runner.thread.index, op) from None

    def _step(self, runner: Runner) -> None:
        from mcheck.simulate.execute import HANDLERS

        code = runner.thread.code
        if runner.pc >= len(code):
            self.end(runner)
            return
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unsupported(f"the execution has not ended after {MAX_STEPS} instructions")
        op = code[runner.pc]
        if op.guard is not None:
            taken = self.value(runner, op.guard.reg)
            if taken is None:
                taken = self.choose(f"the guard of '{op.text}'")
            if bool(taken) == op.guard.negated:
                runner.pc += 1
                return
        try:
            HANDLERS[type(op)](self, runner, op)
        except Misuse as misuse:
            raise self.undefined(misuse, runner.thread.index, op) from None

    def choose(self, what: str) -> int:
        """One of both ways, where the outcome depends on contents that nothing has written."""
        self.notes.add(f"{what} depends on contents that nothing has written; the seed decided")
        return self.rng.getrandbits(1)

    def end(self, runner: Runner) -> None:
        """The thread has exited; barriers no longer wait for it."""
        runner.ended = True
        self.changes += 1
        from mcheck.simulate.barriers import after_exit

        after_exit(self, runner)

    def jump(self, runner: Runner, target: int) -> None:
        """A branch. One backwards whose registers are as they were there before, with no effect of anyone since, will

        come back for ever unless another thread does something: until then the thread sleeps.
        """
        if target <= runner.pc:
            seen = runner.turns.get(target)
            state = tuple(runner.registers.values())
            if seen is None or seen[0] != self.changes:
                runner.turns[target] = (self.changes, {state})
            elif state in seen[1]:
                runner.asleep_at = self.changes
            else:
                seen[1].add(state)
        runner.pc = target

    def _stuck(self) -> None:
        """Nothing can go on although threads have not ended: a deadlock of this execution."""
        groups: dict[tuple[str, str], list[Runner]] = {}
        for runner in self.runners:
            if runner.ended:
                continue
            op = self._standing_at(runner)
            code = _deadlock_code(op)
            groups.setdefault((code, op.text), []).append(runner)
        for (code, text), runners in groups.items():
            first = runners[0]
            others = f" and {len(runners) - 1} more" if len(runners) > 1 else ""
            message = f"{first.thread.name}{others} cannot get past '{text}' in this execution{self._why(first)}"
            self.report(code, message, first.thread.index, self._standing_at(first))

    def _standing_at(self, runner: Runner) -> Op:
        at = runner.pc - 1 if runner.waits is not None else runner.pc
        code = runner.thread.code
        at = min(max(at, 0), len(code) - 1)
        while isinstance(code[at], ops.Label) and at + 1 < len(code):
            at += 1
        return code[at]

    def _why(self, runner: Runner) -> str:
        op = self._standing_at(runner)
        inner = ops.performed(op)
        if not isinstance(inner, ops.MbarrierWait):
            return ""
        address = self.value(runner, inner.address)
        state = self.barriers.get(address) if address is not None else None
        if state is None:
            return ""
        return f": the mbarrier is in phase {state.phase} with {state.pending} arrivals and {state.tx} bytes pending"


def _deadlock_code(op: Op) -> str:
    if isinstance(op, ops.ClusterBarrier):
        return "DEAD005"
    if isinstance(op, ops.Barrier | ops.WarpSync):
        return "DEAD002"
    if isinstance(op, ops.Await):
        return "DEAD003" if isinstance(op.inner, ops.MbarrierWait) else "DEAD004"
    return "DEAD001"


def machine(program: Program, *, seed: int = 0, profile: str = "ptx", how: Behaviour = DOCUMENTED) -> Machine:
    """A machine before its first step: memory initialised, every thread at its first instruction."""
    from mcheck.graph.maps import MAP_SIZE, encode

    memory = Memory(program.memory)
    for instance in program.memory.instances:
        for k, spec in enumerate(instance.object.tensor_map):
            memory.store(instance.base + k * MAP_SIZE, MAP_SIZE, encode(spec))
    runners = []
    for thread in program.threads:
        start: Value = 0 if program.dialect else None
        registers: dict[str, Value] = dict.fromkeys(thread.types, start)
        registers.update(thread.init)
        runners.append(Runner(thread, registers))
    ctas = tuple(sorted({t.place.cta for t in program.threads}, key=lambda c: c.number))
    return Machine(program, profile, Random(seed), memory, runners, ctas=ctas, how=how)  # noqa: S311 - a schedule, no secret
