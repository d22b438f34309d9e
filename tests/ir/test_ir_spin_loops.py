"""Spin loops: which loops repeat an attempt to no other effect, in general and in the two forms of code."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pytest

from mcheck.engines.protocol.analysis import polling
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.spin_loops import Computation, SpinLoop, Step
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.waits import polling_loops

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Toy:
    """Instructions after an attempt at 0, which writes ``p``, and what is computed directly before places."""

    steps: dict[int, Step[str]]
    before: dict[int, list[Computation[str]]]
    asked: AbstractSet[str] = NONE

    def step(self, place: int, known: dict[str, int]) -> Step[str] | None:
        assert known["p"] == 0
        if self.steps.get(place) == RESET:
            known["a"] = 5
        return self.steps.get(place)

    def computed_before(self, place: int) -> list[Computation[str]]:
        return self.before.get(place, [])


def left(
    *steps: Step[str], asked: str = "", before: dict[int, list[Computation[str]]] | None = None, limit: int = 10,
    known: dict[str, int] | None = None,
) -> AbstractSet[str] | None:  # fmt: skip
    """What failed attempts leave in registers, if they are repeated and ask the same."""
    body = Toy(dict(enumerate(steps, 1)), before or {}, frozenset(asked.split()))
    loop = SpinLoop(body, 0, {"p"}, limit)
    return loop.left_behind() if loop.leads_back({"p": 0} | (known or {})) else None


def writes(place: int, names: str) -> Step[str]:
    """A computation before ``place``."""
    return Step((place,), frozenset(names.split()))


def computes(what: object, text: str) -> Computation[str]:
    """A computation such as ``"a b -> c"``."""
    reads, _, written = text.partition("->")
    return Computation(what, tuple(reads.split()), tuple(written.split()))


BACK: Step[str] = Step((0,))
TRAP: Step[str] = Step(())
RESET: Step[str] = Step((2,), frozenset(("a",)))
AGAIN: Step[str] = Step((2,), frozenset("q"), is_attempt=True)


def test_a_failed_attempt_is_repeated() -> None:
    assert left(BACK) == NONE
    assert left(writes(2, "q"), BACK) == {"q"}


def test_an_effect_on_the_way_is_none_of_a_spin_loop() -> None:
    assert left(writes(2, "q")) is None


def test_all_ways_have_to_lead_back() -> None:
    assert left(Step((2, 3)), BACK, writes(0, "q")) == {"q"}
    assert left(Step((2, 3)), BACK, Step((7,))) is None
    assert left(Step((3, 2)), BACK, Step((7,))) is None


def test_a_trap_ends_the_thread() -> None:
    assert left(Step((2, 3)), TRAP, BACK) == NONE


def test_it_asks_the_same_again() -> None:
    assert left(writes(2, "a"), BACK, asked="a") is None
    assert left(writes(2, "a"), BACK, asked="b") == {"a"}
    assert left(BACK, asked="p") is None, "the address is what was read"
    assert left(RESET, BACK, asked="a") is None
    assert left(RESET, BACK, asked="a", known={"a": 4}) is None
    assert left(RESET, BACK, asked="a", known={"a": 5}) == {"a"}


def test_what_is_computed_anew_before_every_attempt_is_the_same() -> None:
    two = [computes("mov", "-> a"), computes("add", "a c -> b")]
    assert left(writes(0, "a b"), asked="a b", before={0: two}) == NONE
    assert left(writes(0, "a b c"), asked="a b", before={0: two}) is None, "from what changes"
    assert left(writes(0, "a b c"), asked="a", before={0: two}) == {"b", "c"}
    assert left(writes(0, "a"), asked="a", before={0: [computes("add", "a -> a")]}) is None
    assert left(writes(0, "a"), asked="a", before={0: [computes("add", "p -> a")]}) is None
    assert left(writes(0, "a"), asked="a", before={0: [computes(None, "-> a")]}) is None, "it reads a clock"
    assert left(writes(0, "a"), asked="a", before={0: [computes("mov", "-> a"), computes(None, "-> a")]}) is None


def test_a_second_attempt_on_the_way_counts_as_the_first() -> None:
    assert left(AGAIN, Step((1,))) == {"q"}
    assert left(writes(2, "a"), Step((3,), is_attempt=True), Step((2,)), asked="a") is None
    same, other = [computes("mov", "c -> a")], [computes("mov", "d -> a")]
    loop: tuple[Step[str], ...] = (writes(2, "a"), Step((3,), is_attempt=True), writes(2, "a"))
    assert left(*loop, asked="a", before={0: same, 2: same}) == NONE
    assert left(*loop, asked="a", before={0: same, 2: other}) is None
    assert left(*loop, asked="a", before={0: same}) is None


def test_ways_after_several_answers_are_judged_together() -> None:
    """What one of them changes is no constant for the other."""
    body = Toy({1: writes(0, "a"), 2: Step((0,))}, {0: [computes("mov", "c -> a")]}, frozenset("a"))
    loop = SpinLoop(body, 0, {"p"}, 10)
    assert loop.leads_back({"p": 0})
    assert loop.left_behind() == NONE
    body.steps[1] = writes(0, "c")
    assert loop.leads_back({"p": 0})
    assert loop.left_behind() is None


def test_a_way_that_is_too_long_is_none() -> None:
    steps = [*(Step((k + 1,)) for k in range(1, 6)), BACK]
    assert left(*steps, limit=7) == NONE
    assert left(*steps, limit=6) is None
    assert left(Step((1,))) is None


WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0;"
SPINS = {
    "plain": f"AGAIN: {WAIT} @!p bra AGAIN;",
    "two-branches": f"AGAIN: {WAIT} @p bra DONE; bra AGAIN; DONE:",
    "through-a-register": f"AGAIN: {WAIT} selp.b32 ok, 1, 0, p; setp.eq.u32 q, ok, 0; @q bra AGAIN;",
    "with-a-pause": f"AGAIN: {WAIT} @p bra DONE; nanosleep.u32 32; bra AGAIN; DONE:",
    "negated": f"AGAIN: {WAIT} not.pred q, p; @q bra AGAIN;",
    "computed-anew": f"AGAIN: mov.u32 n, 0; add.u32 n, n, 1; {WAIT.replace('], 0', '], n')} @!p bra AGAIN;",
}
OTHERS = {
    "no-loop": WAIT,
    "repeated-when-true": f"AGAIN: {WAIT} @p bra AGAIN;",
    "with-a-store": f"AGAIN: {WAIT} @p bra DONE; st.shared.u32 [s], 1; bra AGAIN; DONE:",
    "with-a-fence": f"AGAIN: {WAIT} @p bra DONE; fence.acq_rel.cta; bra AGAIN; DONE:",
    "counted": f"mov.u32 n, 0; AGAIN: {WAIT} add.u32 n, n, 1; @!p bra AGAIN; st.shared.u32 [s], n;",
    "gives-up": f"mov.u32 n, 0; AGAIN: {WAIT} @p bra DONE; add.u32 n, n, 1; setp.lt.u32 q, n, 9; @q bra AGAIN; DONE:",
    "another-next-time": f"mov.u32 n, 0; AGAIN: {WAIT.replace('], 0', '], n')} mov.u32 n, 1; @!p bra AGAIN;",
    "moves-on-by-two-steps": (
        f"mov.u32 n, 0; AGAIN: {WAIT.replace('], 0', '], n')} xor.b32 ok, n, 1; mov.b32 n, ok; @!p bra AGAIN;"
    ),
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
    at = next(k for k, statement in enumerate(function.body) if statement.kind is Kind.MBARRIER_WAIT)
    assert polling_loops.is_spin_loop(function, at) is spins
