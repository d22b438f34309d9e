"""What a program computes, as far as its text decides it: the accesses to data, and the phases that are awaited.

``proved`` is about races, undefined behaviour and deadlocks. A program with fewer rounds, or with a wait that is true
from the beginning, is proved as well, and is no repair. So both are compared: what each thread accesses, where and how
often, and which waits nobody ever ends. Each thread is followed by itself, past every wait; what it loads is unknown.
If that decides where it goes or what it accesses, nothing is said.

The argument: in a program without races each read has one write that it reads from, in every execution that
synchronises alike. A repair that keeps the accesses of all threads, and only orders them, leaves to each read what the
program may have meant; one that drops accesses or makes others computes something else. A wait for a phase that no
arrival completes is true at once, for a fresh mbarrier has completed the phase before its first (PTX ISA 9.7.13.15.16):
it is no wait. Neither is one for a phase that the thread completes by its own arrivals. A program that has such a wait
since its repair has lost one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from mcheck.base.errors import McheckError
from mcheck.base.records import dataclass
from mcheck.effects.dispatch import effect_of
from mcheck.effects.effect import Effect
from mcheck.effects.operands import evaluate_operands
from mcheck.effects.site import Layout, Site
from mcheck.engines.concrete.execute import handler_of
from mcheck.engines.concrete.machine import Machine, Runner, machine
from mcheck.frontend import litmus
from mcheck.ir import ops
from mcheck.ir.def_use import written_registers
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.semantics.undefined import Misuse

ROUNDS = 12
"""For a constant that is any number."""
MOST_STEPS = 100_000
Place = tuple[str, int, int]
"""An object, the number of its instance, and an offset in bytes."""


@dataclass(frozen=True, slots=True)
class Computation:
    """``accesses``: to each access, how often the threads that make it do so. ``flags``: those by relaxed, acquiring or
    releasing instructions. ``vacuous``: the mbarriers with a wait that is true at once although no arrival ever
    completes a phase, or that the waiting thread alone completes. ``early``: those of copies at which a thread's first
    wait is true at once, before a copy has come.
    """

    accesses: dict[tuple[object, ...], frozenset[int]]
    flags: frozenset[tuple[object, ...]]
    vacuous: frozenset[Place]
    early: frozenset[Place]

    @property
    def objects(self) -> frozenset[str]:
        """The objects that are accessed."""
        return frozenset(part[0] for access in self.accesses for part in access if isinstance(part, tuple))


def computation_of(text: str, path: str) -> Computation | None:
    """What the text of a test or sketch computes; none if that depends on what is loaded."""
    try:
        return _compute(litmus.parse(text, path, size=ROUNDS))
    except (McheckError, Misuse, _Unknown):
        return None


LESS = "less is read, written or copied"
MORE = "more is read, written or copied"


def describe_changes(before: Computation, after: Computation) -> tuple[str, ...]:
    """What a repair changes beside the order. A flag that the program did not use before is no data."""
    new = after.objects - before.objects
    flags = {access for access in after.flags if isinstance(place := access[1], tuple) and place[0] in new}
    often = ({access: max(counts) for access, counts in each.accesses.items()} for each in (before, after))
    one, other = often
    found = [LESS] if any(other.get(access, 0) < count for access, count in one.items()) else []
    found += [MORE] if any(one.get(access, 0) < other[access] for access in other.keys() - flags) else []
    names = sorted({name for name, _, _ in after.vacuous - before.vacuous})
    found += [f"nobody else completes the phase that is awaited at `{name}`" for name in names]
    names = sorted({name for name, _, _ in after.early - before.early})
    found += [f"the first wait at `{name}` ends before a copy has come" for name in names]
    return tuple(found)


class _Unknown(Exception):
    """Something depends on what is loaded."""


@dataclass(frozen=True, slots=True)
class _Thread:
    accesses: Counter[tuple[object, ...]]
    flags: set[tuple[object, ...]]
    waits: dict[Place, list[int]]
    arrivals: Counter[Place]
    completed: set[Place]
    """The mbarriers that its copies signal."""
    counts: dict[Place, int]


def _compute(program: Program) -> Computation:
    found = machine(program)
    threads = [_follow(found, runner) for runner in found.runners]
    accesses: dict[tuple[object, ...], set[int]] = {}
    arrivals: Counter[Place] = Counter()
    counts: dict[Place, int] = {}
    completed: set[Place] = set()
    flags: set[tuple[object, ...]] = set()
    for thread in threads:
        completed |= thread.completed
        flags |= thread.flags
        arrivals += thread.arrivals
        counts |= thread.counts
        for access, often in thread.accesses.items():
            accesses.setdefault(access, set()).add(often)
    vacuous = {
        place
        for thread in threads
        for place, parities in thread.waits.items()
        if (set(parities) == {1} and arrivals[place] < counts.get(place, 1))
        or (0 < thread.arrivals[place] == arrivals[place] and place not in completed)
    }
    early = {place for thread in threads for place, parities in thread.waits.items() if parities[0] == 1} & completed
    kept = {access: frozenset(often) for access, often in accesses.items()}
    return Computation(kept, frozenset(flags), frozenset(vacuous), frozenset(early))


def _follow(m: Machine, runner: Runner) -> _Thread:
    """The accesses of a thread that passes every wait."""
    found = _Thread(Counter(), set(), {}, Counter(), set(), {})
    code, steps = runner.thread.code, 0
    site = Site(m.layout, runner.thread.place)
    while runner.pc < len(code) and not runner.ended:
        steps += 1
        if steps > MOST_STEPS:
            raise _Unknown
        op = code[runner.pc]
        if op.guard is not None and bool(_known(m.value(runner, op.guard.reg))) == op.guard.negated:
            runner.pc += 1
        elif isinstance(op, ops.Branch):
            taken = op.condition is None or bool(_known(m.value(runner, op.condition)))
            runner.pc = runner.thread.labels[op.target] if taken else runner.pc + 1
        elif isinstance(op, ops.Alu | ops.Label | ops.Exit):
            handler_of(op)(m, runner, op)
        else:
            _record(m, runner, ops.performed_operation(op), site, found)
            runner.pc += 1
    return found


def _known(value: int | None) -> int:
    if value is None:
        raise _Unknown
    return value


def _record(m: Machine, runner: Runner, op: Op, site: Site, found: _Thread) -> None:
    """Notes what an operation accesses, awaits or signals; what it loads is unknown, and a test of a phase succeeds."""
    facets = op.facets
    made = effect_of(op, evaluate_operands(op, lambda expr: _known(m.value(runner, expr))), site)
    place = None if made.mbarrier is None else _place(m.layout, made.mbarrier)
    if place is not None and isinstance(op, ops.MbarrierWait) and op.parity is not None:
        found.waits.setdefault(place, []).append(_known(m.value(runner, op.parity)) & 1)
    elif place is not None and isinstance(op, ops.MbarrierInit):
        found.counts[place] = _known(m.value(runner, op.count))
    elif place is not None and isinstance(op, ops.MbarrierArrive):
        found.arrivals[place] += 1 if op.count is None else _known(m.value(runner, op.count))
    elif place is not None and isinstance(op, ops.CpAsyncArrive | ops.TensorCommit):
        found.arrivals[place] += 1
        found.completed.add(place)
    found.completed.update(_place(m.layout, signal.mbar) for signal in made.signals)
    if facets.reads or facets.writes:
        for access in _accesses(m.layout, made):
            found.accesses[type(op).__name__, *access] += 1
            if isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.sem != "weak":
                found.flags.add((type(op).__name__, *access))
    for register, _ in written_registers(op):
        runner.registers[register] = 1 if isinstance(op, ops.MbarrierWait) else None


def _accesses(layout: Layout, made: Effect) -> Iterator[tuple[object, ...]]:
    for access in made.accesses:
        yield _place(layout, access.address), access.size
    for store in made.stores:
        yield _place(layout, store.address), store.size
    for run in made.moved():
        yield None if run.src is None else _place(layout, run.src), _place(layout, run.dst), run.size


def _place(layout: Layout, address: int) -> Place:
    instance = layout.objects.at(address)
    if instance is None:
        return "", 0, address
    return instance.object.name, bisect_left(layout.objects.bases, instance.base), address - instance.base
