"""Spin loops: which loops repeat an attempt to no other effect, in general and in the two forms of code."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pytest

from mcheck.engines.protocol.analysis import polling
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.spin_loops import Step, find_way_back
from mcheck.simt.execution import polling_loops

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Toy:
    """Instructions after an attempt at 0, which writes ``p``."""

    steps: dict[int, Step[str]]
    asked: AbstractSet[str] = NONE
    fixed: bool = True

    def step(self, place: int, known: dict[str, int]) -> Step[str] | None:
        assert known["p"] == 0
        return self.steps.get(place)

    def asks_the_same(self, known: dict[str, int], written: AbstractSet[str]) -> bool:
        return self.fixed or not written


def way_back(*steps: Step[str], asked: str = "", fixed: bool = True, limit: int = 10) -> AbstractSet[str] | None:
    body = Toy(dict(enumerate(steps, 1)), frozenset(asked.split()), fixed)
    return find_way_back(body, 0, {"p": 0}, {"p"}, limit)


def computed(place: int, text: str, *, same: bool = False) -> Step[str]:
    """A computation before ``place``, such as ``"a b -> c"``."""
    reads, _, writes = text.partition("->")
    return Step((place,), frozenset(reads.split()), frozenset(writes.split()), same_each_time=same)


BACK: Step[str] = Step((0,))
TRAP: Step[str] = Step(())


def test_a_failed_attempt_is_repeated() -> None:
    assert way_back(BACK) == NONE
    assert way_back(computed(2, "p -> q"), BACK) == {"q"}


def test_an_effect_on_the_way_is_none_of_a_spin_loop() -> None:
    assert way_back(computed(2, "-> q")) is None


def test_all_ways_have_to_lead_back() -> None:
    assert way_back(Step((2, 3)), BACK, computed(0, "-> q")) == {"q"}
    assert way_back(Step((2, 3)), BACK, Step((7,))) is None
    assert way_back(Step((3, 2)), BACK, Step((7,))) is None


def test_a_trap_ends_the_thread() -> None:
    assert way_back(Step((2, 3)), TRAP, BACK) == NONE


def test_it_asks_the_same_again() -> None:
    assert way_back(computed(2, "-> a"), BACK, asked="a") == {"a"}, "from what does not change"
    assert way_back(computed(2, "a -> a"), BACK, asked="a") is None
    assert way_back(computed(2, "p -> a"), BACK, asked="a") is None
    assert way_back(computed(2, "a -> a"), BACK, asked="b") == {"a"}
    assert way_back(computed(2, "-> a"), BACK, asked="a", fixed=False) is None


def test_what_every_iteration_sets_to_the_same_is_not_left() -> None:
    again = computed(2, "-> a", same=True), computed(3, "a -> a", same=True)
    assert way_back(*again, BACK, asked="a") == NONE
    assert way_back(*again, computed(4, "-> a"), BACK) == {"a"}
    assert way_back(computed(2, "c -> a", same=True), BACK) == {"a"}


def test_a_second_attempt_on_the_way_counts_as_the_first() -> None:
    second: Step[str] = Step((2,), writes=frozenset("q"), is_attempt=True)
    assert way_back(second, Step((1,))) == {"q"}
    assert way_back(computed(2, "a -> a"), Step((3,), is_attempt=True), Step((2,)), asked="a") is None


def test_a_way_that_is_too_long_is_none() -> None:
    steps = [*(Step((k + 1,)) for k in range(1, 6)), BACK]
    assert way_back(*steps, limit=7) == NONE
    assert way_back(*steps, limit=6) is None
    assert way_back(Step((1,))) is None


WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0;"
SPINS = {
    "plain": f"AGAIN: {WAIT} @!p bra AGAIN;",
    "two-branches": f"AGAIN: {WAIT} @p bra DONE; bra AGAIN; DONE:",
    "through-a-register": f"AGAIN: {WAIT} selp.b32 ok, 1, 0, p; setp.eq.u32 q, ok, 0; @q bra AGAIN;",
    "with-a-pause": f"AGAIN: {WAIT} @p bra DONE; nanosleep.u32 32; bra AGAIN; DONE:",
    "negated": f"AGAIN: {WAIT} not.pred q, p; @q bra AGAIN;",
}
OTHERS = {
    "no-loop": WAIT,
    "repeated-when-true": f"AGAIN: {WAIT} @p bra AGAIN;",
    "with-a-store": f"AGAIN: {WAIT} @p bra DONE; st.shared.u32 [s], 1; bra AGAIN; DONE:",
    "with-a-fence": f"AGAIN: {WAIT} @p bra DONE; fence.acq_rel.cta; bra AGAIN; DONE:",
    "counted": f"mov.u32 n, 0; AGAIN: {WAIT} add.u32 n, n, 1; @!p bra AGAIN; st.shared.u32 [s], n;",
    "gives-up": f"mov.u32 n, 0; AGAIN: {WAIT} @p bra DONE; add.u32 n, n, 1; setp.lt.u32 q, n, 9; @q bra AGAIN; DONE:",
    "moves-on": f"mov.u32 n, 0; AGAIN: {WAIT.replace('], 0', '], n')} xor.b32 n, n, 1; @!p bra AGAIN;",
}
REGISTERS = ".reg .pred p, q; .reg .b32 ok, n;"
TEXT = f"PTX spin\n{{ .shared .b64 b; .shared .u32 s; }}\nw@cta 0 {{ {REGISTERS} %s bar.sync 0; }}\n"
MODULE = f""".version 8.8
.target sm_90
.address_size 64
.visible .entry k() {{ {REGISTERS} .shared .align 8 .b64 b; .shared .u32 s; %s bar.sync 0; ret; }}
"""


@pytest.mark.parametrize(
    ("loop", "spins"), [*((x, True) for x in SPINS.values()), *((x, False) for x in OTHERS.values())]
)
def test_operations_and_statements_agree(loop: str, spins: bool) -> None:
    thread = parse(TEXT % loop, "spin.litmus").threads[0]
    pc = next(k for k, op in enumerate(thread.code) if isinstance(op, ops.MbarrierWait))
    assert polling.is_spin_loop(thread, pc) is spins
    (function,) = parse_module(MODULE % loop).functions.values()
    at = next(k for k, statement in enumerate(function.body) if statement.opcode[:2] in polling_loops.POLLS)
    assert polling_loops.is_spin_loop(function, at) is spins
