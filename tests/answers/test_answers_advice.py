"""Advice about races comes from the execution graph alone, so all engines give the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.answers.advice.graph import Step, find_step
from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Question
from mcheck.engines.explicit.engine import answer as enumerate_executions
from mcheck.engines.protocol.findings_answer import answer as explore
from mcheck.engines.z3.engine import answer as solve
from mcheck.frontend.litmus import parse
from mcheck.ir import ops

SUITES = Path(__file__).parents[2] / "litmus"
MODEL = load_model("ptx-9.0")


def advice_of(given: Answer) -> dict[tuple[object, ...], str]:
    """The advice about each pair of statements that race, without the numbers of steps, which only schedules have."""
    return {
        (f.code, *sorted((a.line or 0, a.access) for a in f.accesses)): re.sub(r", step \d+\)", ")", f.missing)
        for f in given.findings
        if f.kind == "race"
    }


@pytest.mark.daily
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("bulk/bulk-destination-written-before-without-fence", "Execute fence.proxy.async.shared::cta before line 12"),
        ("cp-async/cp-async-wait-then-relaxed-flag", "Put a barrier between the wait at line 10 and line 16"),
        ("cp-async/cp-async-refill-without-barrier", "Order line 15 before the issue of the operation at line 10"),
        ("cp-async/cp-async-data-into-bulk-store-value", "after line 10, which waits for the copy"),
        ("cp-async/cp-async-wait-group-2-not-the-second", "The wait at line 14 leaves the 2 latest groups pending"),
        ("bulk/bulk-multicast-reuse-acquire-half-alone", "Execute fence.proxy.async before line 26"),
        ("classic/MP+R1+A2-narrow-read", "Give scope .gpu (.relaxed.gpu) at line 6."),
        ("mbarrier/mbarrier-remote-arrive-narrow-after-fence", "Give scope .cluster (.relaxed.cluster) at line 19."),
    ],
)
def test_engines_give_the_same_advice(name: str, wanted: str) -> None:
    program = parse((SUITES / f"{name}.litmus").read_text(encoding="utf-8"), name)
    found = [advice_of(engine(program, MODEL)) for engine in (enumerate_executions, solve, explore)]
    assert found[0] == found[1] == found[2]
    assert any(wanted in text for text in found[0].values())


@pytest.mark.parametrize("engine", [enumerate_executions, solve, explore])
def test_an_acquire_that_may_see_an_earlier_value_is_to_be_checked(engine: Callable[..., Answer]) -> None:
    text = "PTX mp\n{ x = 0; y = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.acquire.gpu r0, y ;\n"
    text += " %s y, 1 | ld.weak r1, x ;\n"
    (told,) = advice_of(engine(parse(text % "st.release.gpu", "mp"), MODEL)).values()
    assert told.startswith("Let line 5 run only if line 4 has read what is released at line 5, by an await or a branch")
    (told,) = advice_of(engine(parse(text % "st.relaxed.gpu", "mp"), MODEL)).values()
    assert told.startswith("Release after the first access")


def test_a_deadlock_gets_the_fix_that_the_protocol_engine_tried() -> None:
    name = "mbarrier/mbarrier-count-two-one-arrives"
    program = parse((SUITES / f"{name}.litmus").read_text(encoding="utf-8"), name)
    (found,) = (f for f in ask(program, MODEL, Question(), "explicit").findings if f.kind == "deadlock")
    assert found.missing.startswith("Initialise bar@0 at line 7 with count 1 instead of 2")


def test_a_pair_by_two_addresses_lacks_an_alias_fence() -> None:
    program = parse((SUITES / "proxies/MP+alias-of-flag.litmus").read_text(encoding="utf-8"), "alias")
    told = advice_of(enumerate_executions(program, MODEL)).values()
    assert any(text.startswith("Execute fence.proxy.alias on the way from line 7 to line 6") for text in told)


def test_a_step_is_found_by_its_number() -> None:
    steps = [Step(k % 2, k // 2 + 1, [], ops.Exit()) for k in range(4)]
    assert find_step(steps, 1, 2) is steps[3]
    assert find_step(steps, 1, 0) is None
    assert find_step(steps, 2, 1) is None


RESET = """PTX turn-reset-by-a-weak-store
{ .global .u32 turn = 0; }
first@cta 0 { fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [turn], 1; }
last@cta 1 {
  await ld.acquire.gpu.global.u32 r0, [turn] == 1;
  st.global.u32 [turn], 0;
}
"""


def test_a_weak_reset_of_a_turn_has_to_be_strong() -> None:
    """The fence before the addition does not release the read of that: no order of the two helps."""
    (said,) = advice_of(explore(parse(RESET, "reset"), MODEL)).values()
    assert said == "Make the write at line 6 st.relaxed.gpu: a weak one races with the atomic at line 3."
