"""Loops that are written to run often: the answer of the whole program, from a small part of it."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.frontend.litmus.parametric.periodicity import LONG
from mcheck.ir.program import Program
from tests.engines.protocol.late import LATE
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import GUARDED, PING_PONG, TENSOR, gemm, ring

REPEATING = {"ring": ring(2), "ping-pong": PING_PONG, "gemm": gemm(1), **GUARDED, "tensor": TENSOR}


def long(text: str, number: int) -> Program:
    return parse(text.replace("N = any", f"N = {number}"), "long.litmus", every=True)


def asked(program: Program) -> Answer:
    return ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, brief=True), "protocol")


@pytest.mark.daily
@pytest.mark.parametrize("name", REPEATING)
def test_a_large_number_costs_a_period(name: str) -> None:
    program = long(REPEATING[name], 20_000)
    assert program.shortened is not None
    given = asked(program)
    assert given.verdict == "proved", given.reason
    assert given.reason is not None
    assert "the state repeats every" in given.reason


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize(("name", "more"), [("ring", 0), ("guards", 5), ("gemm", 1)])
def test_the_whole_program_says_the_same(name: str, more: int) -> None:
    text = REPEATING[name].replace("N = any", f"N = {LONG + more}")
    given, whole = asked(long(text, 0)), check(parse(text, "long.litmus"), load_model("ptx-9.0"))
    assert given.executions == 2
    assert (given.verdict, given.findings, given.assumptions) == (whole.verdict, whole.findings, whole.assumptions)


def test_what_is_left_out_is_in_the_middle() -> None:
    program = long(ring(4), LONG)
    assert program.shortened is not None
    whole = [thread.code for thread in program.shortened.whole().threads]
    for kept in (0, 5, LONG + 5):
        assert [thread.code for thread in program.shortened.without(kept, 0).threads] == whole
    fewer = program.shortened.without(16, 64).threads[0]
    (begins,) = (b for b in fewer.rounds.values() if len(b) > 20)
    size = begins[1] - begins[0]
    assert fewer.code[begins[16] :] == whole[0][begins[16] + 64 * size :]
    assert fewer.code[: begins[16]] == whole[0][: begins[16]]


@pytest.mark.daily
@pytest.mark.parametrize("name", ["bytes-in-a-round", "a-fence-that-ends", "bytes-by-a-quotient", "a-source-that-ends"])
def test_what_shows_late_is_found(name: str) -> None:
    program = long(LATE[name], LONG + 1)
    assert program.instance is None
    assert asked(program).verdict == "finding"


@pytest.mark.daily(days=4, least=0)
def test_what_the_last_rounds_do_is_that_of_the_number() -> None:
    """A wait behind the loop for a phase that has come with every second number alone."""
    waits = "  await mbarrier.try_wait.parity.shared::cta.b64 [full[0]], 0;\n}\nconsumer"
    text = changed(PING_PONG, ("    }\n  }\n}\nping", "    }\n  }\n" + waits.replace("consumer", "ping")))
    given = [asked(long(text, number)) for number in (LONG + 1, LONG)]
    assert [a.verdict for a in given] == ["proved", "finding"]
    assert "the state repeats" in (given[0].reason or "")
