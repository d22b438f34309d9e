"""The state of one concrete execution.

An asynchronous operation becomes a ``Task``: it reads its source at one point and writes its destination and signals
its completion at a later one. Memory is sequentially consistent here; weaker orders are the subject of the other
engines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from random import Random
from typing import TypeVar

from mcheck.base.errors import Unsupported
from mcheck.base.phrase import Phrase, say
from mcheck.base.records import dataclass
from mcheck.effects.dispatch import effect_of
from mcheck.effects.effect import Effect
from mcheck.effects.operands import Operands, evaluate_operands
from mcheck.effects.site import Layout, Site, layout_of
from mcheck.findings.finding import Access, Finding
from mcheck.findings.undefined_effects import continues_after
from mcheck.ir.aligned_operations import Statement
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary, apply_binary, apply_unary
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.semantics import mbarrier
from mcheck.semantics.chip_behaviour import DOCUMENTED, Behaviour
from mcheck.semantics.memory import Memory
from mcheck.semantics.undefined import Misuse

Value = int | None
T = TypeVar("T")
"""A register's value; ``None`` is unknown."""

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
    """Tasks of one family: those not yet committed, and the committed groups, oldest first.

    The ``forgotten`` first groups, which are complete, have been dropped.
    """

    open: list[Task] = field(default_factory=list)
    committed: list[list[Task]] = field(default_factory=list)
    forgotten: int = 0
    tracked: int = 0
    """How many of the open tasks are tracked by an mbarrier."""

    @property
    def count(self) -> int:
        """How many groups have been committed."""
        return self.forgotten + len(self.committed)

    def is_complete(self, number: int) -> bool:
        """Whether the first ``number`` groups have been committed and are complete."""
        while self.committed and all(task.done for task in self.committed[0]):
            del self.committed[0]
            self.forgotten += 1
        return number <= self.forgotten


@dataclass(slots=True, eq=False)
class Runner:
    """A thread: its position, its registers, and its wait condition."""

    thread: Thread
    registers: dict[str, Value]
    pc: int = 0
    ended: bool = False
    wake_condition: Callable[[], bool] | None = None
    groups: dict[str, Groups] = field(default_factory=dict)
    cp_async: list[Task] = field(default_factory=list)
    cluster_arrived: int | None = None
    loop_states: dict[int, tuple[int, set[tuple[Value, ...]]]] = field(default_factory=dict)
    asleep_at: int = -1
    """The value of ``Machine.changes`` when the thread was found to repeat itself."""
    aligned: list[Statement] = field(default_factory=list)
    """The aligned instructions that it has executed."""


class Undefined(Exception):
    """Undefined behaviour, which ends the execution."""


@dataclass(slots=True, eq=False)
class Arrival:
    """An arrival at a barrier: the instruction, its predicate, the generation that it counted in."""

    op: Op
    predicate: Value = None
    round: int | None = None


@dataclass(slots=True)
class Gathering:
    """The arrivals at a barrier since its last generation, by thread; ``number`` is that of the next generation."""

    arrived: dict[int, list[Arrival]] = field(default_factory=dict)
    number: int = 0


@dataclass(slots=True, eq=False)
class Machine:
    """The state of an execution. ``changes`` counts effects, so that a spinning thread can sleep until there is one."""

    program: Program
    profile: str
    rng: Random
    memory: Memory
    layout: Layout
    runners: list[Runner]
    barriers: dict[int, mbarrier.State] = field(default_factory=dict)
    waited: dict[int, int] = field(default_factory=dict)
    tokens: set[tuple[int, int]] = field(default_factory=set)
    """The states that arrives have returned, each with the address of its mbarrier."""
    gatherings: dict[tuple[object, ...], Gathering] = field(default_factory=dict)
    results: dict[tuple[tuple[object, ...], int], int] = field(default_factory=dict)
    exchanged: dict[tuple[tuple[object, ...], int], dict[int, Value]] = field(default_factory=dict)
    """The values that the lanes have brought to each collective of a mask."""
    tasks: list[Task] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    changes: int = 0
    steps: int = 0
    notes: set[str] = field(default_factory=set)
    diverged_warps: set[tuple[int, int]] = field(default_factory=set)
    """The warps whose lanes do not execute the same aligned instructions."""
    open_points: set[str] = field(default_factory=set)
    behaviour: Behaviour = DOCUMENTED
    deadline: Callable[[], None] = lambda: None
    """Raises when the time is over."""

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

    def known_value(self, runner: Runner, expr: Expr, what: str = "operand") -> int:
        """The value of an operand that decides what the instruction accesses; it must be known."""
        value = self.value(runner, expr)
        if value is None:
            op = runner.thread.code[runner.pc]
            raise Unsupported(f"the {what} of '{op.text}' depends on uninitialised contents", op.span)
        return value

    def optional_value(self, runner: Runner, expr: Expr | None, what: str = "operand") -> int | None:
        """``known_value`` of an optional operand."""
        return None if expr is None else self.known_value(runner, expr, what)

    def position(self, runner: Runner) -> Site:
        """The position of a thread, for messages."""
        return Site(self.layout, runner.thread.place)

    def operands(self, runner: Runner, op: Op) -> Operands:
        """The values of the operands that decide what an instruction accesses."""
        return evaluate_operands(op, lambda expr: self.known_value(runner, expr))

    def effect_of(self, runner: Runner, op: Op) -> Effect:
        """The effect of an instruction; undefined behaviour if a precondition is violated."""
        return self.check_preconditions(runner, op, effect_of(op, self.operands(runner, op), self.position(runner)))

    def check_preconditions(self, runner: Runner, op: Op, made: Effect) -> Effect:
        """Checks the preconditions of an effect: reports those after which the thread goes on, raises for others."""
        for fault in made.faults:
            if not continues_after(self.program, fault.code, op):
                raise Misuse(fault.code, fault.message, "")
            self.report(fault.code, fault.message, runner.thread.index, op)
        return made

    def mbarrier_address(self, runner: Runner, op: Op) -> int:
        """The address of the mbarrier object of an instruction."""
        made = self.effect_of(runner, op)
        return self.require_part(made, made.mbarrier)

    def require_part(self, made: Effect, found: T | None) -> T:
        """A part of an effect that must be present."""
        if found is None:
            raise Misuse(made.faults[0].code, made.faults[0].message, "")
        return found

    # --- what is found ------------------------------------------------------------------------------

    def report(self, code: str, message: str | Phrase, thread: int, op: Op | None, section: str = "") -> None:
        """Adds a finding, once."""
        from mcheck.findings import catalogue

        entry, said = catalogue.get(code), say("{}", message)
        accesses: tuple[Access, ...] = ()
        if op is not None:
            accesses = (Access(thread=self.program.threads[thread].name, instruction=op.text, span=op.span),)
        finding = Finding(
            code=code,
            kind=entry.kind,
            severity=entry.severity(self.profile),
            said=said,
            accesses=accesses,
            fixes=(entry.fix_for(said),),
            section=section or entry.section,
        )
        if finding not in self.findings:
            self.findings.append(finding)

    def report_undefined(self, misuse: Misuse, thread: int, op: Op) -> Undefined:
        """Reports undefined behaviour; the execution cannot go on."""
        section = misuse.section
        if section and not section.startswith("PTX"):
            section = f"PTX ISA 9.0 section {section}"
        self.report(misuse.code, misuse.message, thread, op, section)
        return Undefined()

    # --- mbarriers ----------------------------------------------------------------------------------

    def mbarrier_state(self, address: int) -> mbarrier.State:
        """The state of the mbarrier object at ``address``."""
        state = self.barriers.get(address)
        if state is None:
            raise Misuse("UB201", f"there is no valid mbarrier object at {address:#x}", "PTX ISA 9.0 section 9.7.13.15")
        return state

    def advance(self, address: int, step: mbarrier.Step) -> None:
        """Applies an operation to an mbarrier and stores its new state."""
        self.barriers[address] = step[0]
        self.changes += 1

    def check_untouched(self, address: int, size: int) -> None:
        """Raises ``Misuse`` for an ordinary access to a valid mbarrier object (9.7.13.15)."""
        for place in self.barriers:
            if place < address + size and address < place + MBARRIER:
                raise Misuse(
                    "UB202", f"an access touches the mbarrier object at {place:#x}", "PTX ISA 9.0 section 9.7.13.15"
                )

    # --- tasks --------------------------------------------------------------------------------------

    def issue_task(self, task: Task) -> Task:
        """Issues an asynchronous operation."""
        self.tasks.append(task)
        self.changes += 1
        return task

    def perform_half(self, task: Task) -> None:
        """Performs the next half of an asynchronous operation."""
        try:
            if not task.fetched:
                task.fetched = True
                task.fetch()
            else:
                task.done = True
                self.tasks.remove(task)
                task.finish()
        except Misuse as misuse:
            raise self.report_undefined(misuse, task.thread, task.op) from None
        self.changes += 1

    # --- threads --------------------------------------------------------------------------------------

    def choose(self, what: str) -> int:
        """A random decision that depends on uninitialised contents."""
        self.notes.add(f"{what} depends on uninitialised contents; the seed decided")
        return self.rng.getrandbits(1)

    def end_thread(self, runner: Runner) -> None:
        """Ends a thread."""
        runner.ended = True
        self.changes += 1

    def branch_to(self, runner: Runner, target: int) -> None:
        """Executes a taken branch.

        After a backward branch with the same registers as at an earlier one, and no effect of any thread since, the
        thread would loop forever unless another thread acts: it sleeps until then.
        """
        if target <= runner.pc:
            seen = runner.loop_states.get(target)
            state = tuple(runner.registers.values())
            if seen is None or seen[0] != self.changes:
                runner.loop_states[target] = (self.changes, {state})
            elif state in seen[1]:
                runner.asleep_at = self.changes
            else:
                seen[1].add(state)
        runner.pc = target


def machine(
    program: Program,
    *,
    seed: int = 0,
    profile: str = "ptx",
    how: Behaviour = DOCUMENTED,
    deadline: Callable[[], None] = lambda: None,
) -> Machine:
    """A machine in its initial state: memory initialised, every thread at its first instruction."""
    from mcheck.semantics.tensor_map_values import MAP_SIZE, encode

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
    layout = layout_of(program)
    return Machine(program, profile, Random(seed), memory, layout, runners, behaviour=how, deadline=deadline)  # noqa: S311 - a schedule, no secret
