"""Registers that go round in loops, as constants: nothing else is said of a program than before."""

from __future__ import annotations

from operator import is_
from random import Random

import pytest

from benchmarks.any_number import LOOP, SKETCHES, in_registers, mistaken
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.cat import load_model
from mcheck.effects.operands import decisive_expressions
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.expr import Reg
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.program import Program
from mcheck.proofs.parametric_proof import Proof, prove
from mcheck.proofs.periodic_registers import PROBED_ROUNDS, Folding, find_folding
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import REGISTERS

MODEL = load_model("ptx-9.0")
COUNTED = [text for text in map(in_registers, SKETCHES) if "%st" in text]


def folding(text: str) -> Folding | None:
    program = parse(text, "any.litmus", every=True)
    assert program.rounds is not None
    assert program.instance is not None
    rounds = program.rounds()
    return find_folding(program.instance(rounds.least + PROBED_ROUNDS), rounds)


def sized(text: str, number: int) -> Program:
    program = parse(text, "any.litmus", every=True)
    assert program.instance is not None
    return program.instance(number)


def proof(text: str) -> Proof:
    return prove(parse(text, "any.litmus", every=True), MODEL, "ptx", 2, Limit(None))


def codes(program: Program) -> set[str]:
    return {f.code for f in check(program, MODEL, timeout=20).findings}


def test_most_sketches_may_count_in_registers() -> None:
    assert len(COUNTED) > 8
    assert all(LOOP.search(text) for text in COUNTED)


def test_what_registers_say_is_said_by_constants() -> None:
    found = folding(REGISTERS)
    assert found is not None
    assert found.rounds.period == 6
    for number in (3, 0, 7, 40, 8):  # in any order
        for thread in found.program(sized(REGISTERS, number)).threads:
            assert not any(
                isinstance(e, Reg) for op in thread.code for e in decisive_expressions(ops.performed_operation(op))
            )
            computed = {op.op for op in thread.code if isinstance(op, ops.Alu)}
            assert computed <= {"nop"}, "nobody needs it any more"


def test_threads_and_numbers_share_what_is_the_same() -> None:
    found = folding(REGISTERS)
    assert found is not None
    program = parse(REGISTERS, "any.litmus", every=True)
    assert program.instance is not None
    one, few, more = (found.program(program.instance(number)).threads[0].code for number in (9, 9, 12))
    assert all(map(is_, one, few))
    waits, others = ([op for op in code if isinstance(op, ops.Await)] for code in (few, more))
    assert all(map(is_, waits, others))


@pytest.mark.daily
@pytest.mark.parametrize("text", COUNTED)
def test_with_registers_as_with_rounds(text: str) -> None:
    given = proof(text)
    assert given.answer.verdict == "proved"
    assert given.turns or given.period > 1


@pytest.mark.daily
@pytest.mark.parametrize("item", range(24))
def test_the_same_is_found(item: int) -> None:
    """Of sketches with random mistakes, the computation of stages included."""
    random = Random(f"folding-{item}")
    text = random.choice(COUNTED).replace("warp 1 {", "warp 1, lane 0..2 {").replace("[empty[s]], 32", "[empty[s]], 2")
    lines = text.split("\n")
    for _ in range(random.choice((0, 1, 1, 2))):
        lines = mistaken(random, lines)
    text = "\n".join(lines)
    try:
        found = folding(text)
    except (Aperiodic, InputError):
        return
    for number in (0, 1, 2, 5, 9, 14) if found is not None else ():
        try:
            program = sized(text, number)
        except InputError:
            return
        assert found is not None
        assert codes(found.program(program)) == codes(program), f"N = {number}\n{text}"


def late(*changes: tuple[str, str]) -> str:
    return changed(REGISTERS, *changes)


@pytest.mark.parametrize(
    "text",
    [
        late(("    setp.eq.u32 p, idx, S;", "    setp.eq.u32 p, idx, 1000;")),
        late(("    setp.eq.u32 p, idx, S;", "    setp.eq.u32 p, idx, 128;")),
        late(("    setp.eq.u32 p, idx, S;", "    ld.shared.u32 fa, [buf]; setp.eq.u32 p, idx, fa;")),
    ],
    ids=["never", "after 128 rounds", "when memory says so"],
)
def test_what_does_not_come_round_stays_a_register(text: str) -> None:
    found = folding(text)
    code = (found.program(sized(text, 5)) if found is not None else sized(text, 5)).threads[0].code
    waits = [op for op in code if isinstance(op, ops.Await)]
    assert any(isinstance(e, Reg) for op in waits for e in decisive_expressions(op.inner))


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("round_", [9, 31])
def test_a_stage_that_is_wrong_once_is_found(round_: int) -> None:
    """A second counter, which comes round late, puts the slot back once too often."""
    often = f"add.u32 n, n, 1; setp.eq.u32 q, n, {round_}; @q mov.u32 n, 0; @q add.u32 idx, idx, 1;"
    text = late(
        ("  .reg .pred p;", "  .reg .pred p, q;\n  .reg .b32 n;\n  mov.u32 n, 0;"),
        ("    add.u32 idx, idx, 1;", f"    {often}\n    add.u32 idx, idx, 1;"),
    )
    with pytest.raises(Aperiodic):
        proof(text)
    assert codes(sized(text, round_ + 3)) != set()


WAYS = """PTX ways
const S = 2, N = any;
{{
  .global .align 4 .u32 g[4];
  .shared .align 4 .u32 x[4];
}}
P@cta 0, warp 0, lane 0 {{
  .reg .b32 s, a, n;
  .reg .pred p, q;
  mov.u32 s, 0;
  for k in 0..N {{
    {body}
    mad.lo.u32 a, s, 4, x;
    st.shared.u32 [a], 1;
    xor.b32 s, s, 1;
  }}
}}
"""


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("", True),
        ("ld.global.u32 n, [g]; if (n == 1) { mov.u32 s, s; }", True),
        ("ld.global.u32 n, [g]; if (n == 1) { mov.u32 s, 0; }", False),
        ("ld.global.u32 n, [g]; setp.eq.u32 q, n, 1; @q mov.u32 s, 0;", False),
        ("L: ld.global.u32 n, [g]; if (n == 1) { bra L; }", True),
        ("L: xor.b32 s, s, 1; ld.global.u32 n, [g]; if (n == 1) { bra L; }", False),
        ("if (s == 0) { mov.u32 n, 5; }", True),
    ],
)
def test_where_ways_meet(body: str, known: bool) -> None:
    """A register is a constant if it is the same one on all ways; what a spin loop writes is not known in it."""
    text = WAYS.format(body=body)
    try:
        found = folding(text)
    except InputError:  # a label in every round
        found = folding(text.replace("L:", "").replace("bra L;", ""))
    stores = [op for op in sized_code(found, text) if isinstance(op, ops.Store)]
    assert all(isinstance(op.address, Reg) != known for op in stores)


def sized_code(found: Folding | None, text: str) -> tuple[ops.Op, ...]:
    program = sized(text, 6)
    return (found.program(program) if found is not None else program).threads[0].code
