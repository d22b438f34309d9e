"""What programs with different numbers have in common is executed once, to the same effect as each by itself."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum

import pytest

from mcheck.base.errors import InputError
from mcheck.cat import load_model
from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.machine_copies import copy_machine
from mcheck.engines.protocol.execution.setup import Setup, prepare
from mcheck.engines.protocol.incremental.compilation import Compiled
from mcheck.engines.protocol.incremental.sorts import Sorts
from mcheck.engines.protocol.operations.scheduler import execute, first_runnable, run_to_end
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.trace import TraceEntry
from mcheck.events.thread_state import AsyncRecord
from mcheck.frontend.litmus import parse
from mcheck.proofs.prefix_sharing import SharedPrefixes, Unshared
from mcheck.proofs.program_diff import ProgramDiff
from tests.engines.protocol.partitions import settled_partition
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import GUARDED, PING_PONG, TENSOR, TWO_PIPELINES, gemm, ring

MOST = 9


class Far(Exception):
    """Far enough."""


def family(text: str) -> Callable[[int], Setup]:
    """The programs of a sketch by their numbers, as the engine runs them."""
    program = parse(text, "any.litmus", every=True)
    assert program.instance is not None
    agents = settled_partition(program.instance(3), load_model("ptx-9.0"))
    made: dict[int, Setup] = {}

    def setup(number: int) -> Setup:
        if number not in made:
            assert program.instance is not None
            one = program.instance(number)
            made[number] = prepare(one, agents, load_model("ptx-9.0"), "ptx", 2, lambda: None)
        return made[number]

    return setup


def parted(setup: Callable[[int], Setup], first: int = 1) -> SharedPrefixes:
    """The executions of the numbers from ``first`` on, each where it parts from larger ones."""
    shared = SharedPrefixes(lambda number: ProgramDiff.compare(setup(number), setup(number + 1)), first)

    def before(m: Machine, agent: Agent) -> None:
        shared.before_step(m, agent)
        if shared.number > MOST:
            raise Far

    with suppress(Far):
        m = execute(setup(first), before_step=before, choose_agent=first_runnable)
        shared.kept[shared.number] = m
    return shared


def steps(m: Machine) -> list[tuple[object, ...]]:
    return [(e.actor, e.agent, e.step, e.time, e.op, e.op.span, e.note, e.pc) for e in m.trace]


def outcome(m: Machine) -> tuple[object, ...]:
    """What an execution has come to, problems and vectors of time included."""
    return (
        m.outcome, m.problems, m.reversals, [(a.status, a.pc, a.step, a.time, a.loop_iterations) for a in m.agents],
        [lane.registers for a in m.agents for lane in a.lanes], m.memory.known_contents(frozenset()),
        [(bar.state, bar.lifetime, bar.time, bar.waited_phases) for bar in m.mbarriers.values()],
    )  # fmt: skip


SHARED = {
    "ring": ring(2), "ping-pong": PING_PONG, "attention": TWO_PIPELINES, "gemm": gemm(), "tensor": TENSOR, **GUARDED,
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
def test_an_execution_that_parts_late_is_that_from_the_beginning(text: str) -> None:
    setup = family(text)
    shared = parted(setup)
    assert list(shared.kept) == list(range(1, MOST + 1))
    where = [len(m.trace) for m in shared.kept.values()]
    for number in range(1, MOST + 1):
        together, alone = shared.run_instance(number), execute(setup(number), choose_agent=first_runnable)
        assert steps(together) == steps(alone)
        assert outcome(together) == outcome(alone)
        assert together.program is setup(number).program
        assert together.window.accesses.bit_count() == alone.window.accesses.bit_count()
    if text != GUARDED["ahead"]:
        assert where[-1] > len(execute(setup(MOST - 5), choose_agent=first_runnable).trace) // 2


def test_what_is_out_of_bounds_for_one_number_alone_is_found() -> None:
    """The objects of a number are as large as it says, however large those of larger ones are."""
    text = changed(ring(), ("src + 1024*k]", "src + 1024*k + 1024*(k/4)]"), ("1024*N + 1024", "1024*N + 1024*(N/6)"))
    setup = family(text)
    shared = parted(setup)
    assert {p.code for p in shared.kept[5].problems} == {"UB103"}
    assert [shared.run_instance(number).problems for number in range(1, 5)] == [[]] * 4
    assert not execute(setup(6), choose_agent=first_runnable).problems


def test_a_copy_shares_nothing_that_changes() -> None:
    setup = family(ring(2))(6)
    seen: list[Machine] = []

    def before(m: Machine, _: Agent) -> None:
        if len(m.trace) == 30:
            seen.append(m)
            raise Far

    with pytest.raises(Far):
        execute(setup, before_step=before, choose_agent=first_runnable)
    mine = {id(x): x for x in changeable(seen[0])}
    theirs = {id(x): x for x in changeable(copy_machine(seen[0]))}
    both = [x for key, x in mine.items() if key in theirs]
    left = [x for x in both if not isinstance(x, KEPT) and not vector(x, seen[0])]
    assert [x is seen[0].agent_of_thread for x in left] == [True]


KEPT = TraceEntry | Setup | Sorts | AsyncRecord | Enum | Compiled | Tape
"""What is shared, and does not change or belongs to all executions."""


PLAIN = list | dict | set | deque | bytearray


def frozen(x: object) -> bool:
    """Whether it is of a frozen data class."""
    return dataclasses.is_dataclass(x) and type(x).__setattr__ is not object.__setattr__


def vector(x: object, m: Machine) -> bool:
    """Whether it is a vector of time, which nobody changes."""
    return isinstance(x, list) and len(x) in (0, len(m.zero_clock)) and all(isinstance(y, int) for y in x)


def changeable(root: Machine) -> Iterator[object]:
    """The objects that a machine holds and that may change, those of its set-up and of its steps left aside."""
    seen: set[int] = set()
    todo: list[object] = [root]
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, type) or callable(x):
            continue
        seen.add(id(x))
        if isinstance(x, PLAIN) or (not frozen(x) and (dataclasses.is_dataclass(x) or hasattr(x, "__dict__"))):
            yield x
        if isinstance(x, KEPT):
            continue
        if isinstance(x, dict):
            todo += [*x.keys(), *x.values()]
        elif isinstance(x, list | tuple | set | frozenset | deque):
            todo += x
        elif dataclasses.is_dataclass(x):
            todo += [] if frozen(x) else [getattr(x, f.name) for f in dataclasses.fields(x)]
        elif hasattr(x, "__dict__"):
            todo += vars(x).values()
        else:
            todo += [getattr(x, name) for name in getattr(x, "__slots__", ())]


def test_the_original_goes_on_as_if_it_had_not_been_copied() -> None:
    setup = family(ring(2))(6)
    kept: list[Machine] = []

    def before(m: Machine, _: Agent) -> None:
        if len(m.trace) in (10, 30):
            kept.append(copy_machine(m))

    watched = execute(setup, before_step=before, choose_agent=first_runnable)
    for m in (*kept, execute(setup, choose_agent=first_runnable)):
        if m.outcome == "end" and not any(a.status == "done" for a in m.agents):
            run_to_end(m)
        assert steps(m) == steps(watched)
        assert outcome(m) == outcome(watched)


def test_programs_that_an_execution_could_tell_apart_have_no_joint() -> None:
    """Where mbarriers may end, phases are counted otherwise."""
    more = "if (N == 4) { mbarrier.inval.shared::cta.b64 [empty[0]]; }"
    setup = family(changed(ring(), ("for k in N..N+S {\n", f"{more}\n  for k in N..N+S {{\n")))
    assert ProgramDiff.compare(setup(2), setup(3)) is not None
    assert ProgramDiff.compare(setup(3), setup(4)) is None
    with pytest.raises(Unshared):
        parted(setup, 3)


def test_objects_that_grow_are_in_nobodys_way() -> None:
    text = changed(
        ring(), ("src[1024*N + 1024];", "src[1024*N + 1024], more[64];"),
        ("ld.shared.u32 r0", "ld.global.u32 r1, [more];\n    ld.shared.u32 r0"),
    )  # fmt: skip
    shared = parted(family(text))
    assert not any(shared.run_instance(number).problems for number in range(1, MOST + 1))


def test_larger_numbers_are_no_smaller_ones() -> None:
    setup = family(ring())
    assert ProgramDiff.compare(setup(4), setup(5)) is not None
    assert ProgramDiff.compare(setup(5), setup(4)) is None
    with pytest.raises(InputError):
        family(changed(ring(), ("1024*N + 1024", "1024*N")))(0)
