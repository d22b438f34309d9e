"""One policy: who is asked what, when the asking ends, and what several answers come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.errors import InternalError
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.cat import load_model
from mcheck.checking.policy import agreement
from mcheck.checking.policy import ask as asking
from mcheck.checking.policy.engine_choice import plan_attempts
from mcheck.checking.policy.question import Completeness, Question
from mcheck.findings.finding import Finding
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program

RACE = Finding(code="RACE001", kind="race", severity="error", said=("a race",))
NOTE = Finding(code="RACE005", kind="race", severity="review", said=("worth a look",))
MODEL = load_model("ptx-9.0")
MP = """PTX mp
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 1; }
Q@cta 1 { ld.relaxed.gpu.global.u32 r0, [y]; ld.relaxed.gpu.global.u32 r1, [x]; }
exists (Q:r0 == 1)
"""


def wide() -> Program:
    """A program that is no litmus test any more."""
    body = "atom.add.relaxed.gpu.global.u32 r0, [x], 1; " * 30
    return parse(f"PTX w\n{{ .global .u32 x = 0; }}\nP@cta 0, warp 0 {{ {body} }}\nexists (P:r0 == 1)", "w.litmus")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Puts answers in the place of engines; the names of those that were asked."""

    def given(**answers: Answer) -> list[str]:
        names: list[str] = []

        def engine(name: str, *_: object) -> Answer:
            names.append(name)
            return replace(answers[name], engine=name)

        monkeypatch.setattr(asking, "ask_engine", engine)
        return names

    return given


def test_a_litmus_test_goes_to_a_listing_engine_first() -> None:
    text = MP.replace("{ st.relaxed", "{ bar.sync 0; st.relaxed", 1)
    small = plan_attempts(parse(text, "mp.litmus"), Question(), "auto")
    assert [a.engine for a in small.attempts] == ["explicit", "protocol", "protocol", "explicit"]
    assert [a.seconds is None for a in small.attempts] == [False, False, True, True]
    assert plan_attempts(wide(), Question(), "auto").attempts[0].engine == "protocol"


@pytest.mark.parametrize("about", [Completeness.STATES, Completeness.VERDICT])
def test_the_time_of_a_classic_test_is_for_the_engine_that_lists(about: Completeness) -> None:
    """A busy machine may let it end later than its first attempt does."""
    chosen = plan_attempts(parse(MP, "mp.litmus"), Question(about=about), "auto").attempts
    assert [(a.engine, a.seconds) for a in chosen] == [("explicit", 4.0), ("protocol", 4.0), ("explicit", None)]


def test_a_wide_classic_test_is_for_z3() -> None:
    """Which is not stopped shortly before it is done; the protocol engine gets a moment, and never all that is left."""
    threads = " | ".join(f"P{k}@cta {k % 2},gpu 0" for k in range(20))
    rows = [" | ".join(f"st.relaxed.gpu x{k}, 1" for k in range(20)), " | ".join(["fence.sc.gpu"] * 20)]
    rows.append(" | ".join(f"ld.relaxed.gpu r0, x{(k + 1) % 20}" for k in range(20)))
    text = "PTX sbf\n{ }\n" + "".join(f" {row} ;\n" for row in (threads, *rows)) + "exists (P0:r0 == 0)\n"
    program = parse(text, "sbf.litmus")
    chosen = plan_attempts(program, Question(about=Completeness.VERDICT), "auto").attempts
    assert [(a.engine, a.seconds is None) for a in chosen] == [("z3", False), ("protocol", False), ("z3", True)]
    assert chosen[0].seconds is not None
    assert chosen[0].seconds > 10
    hasty = plan_attempts(program, Question(about=Completeness.VERDICT, timeout=6), "auto").attempts
    assert [a.seconds for a in hasty] == [4.0, 2.0, None]


def why(text: str) -> Reason:
    """A reason that is no limit."""
    return Reason(Cause.UNSUPPORTED, text)


def test_a_named_engine_is_asked_alone() -> None:
    for name in ("explicit", "z3", "protocol"):
        (only,) = plan_attempts(parse(MP, "mp.litmus"), Question(), name).attempts
        assert (only.engine, only.seconds) == (name, None)


def test_findings_of_a_litmus_test_have_both_answers(asked: Callable[..., list[str]]) -> None:
    program = parse(MP, "mp.litmus")
    question = Question(about=Completeness.FINDINGS)
    names = asked(protocol=Answer(verdict="proved"), explicit=Answer(verdict="finding", findings=(RACE,)))
    assert asking.ask(program, MODEL, question).engine == "explicit"
    assert names == ["protocol", "explicit"]
    names = asked(protocol=Answer(verdict="finding", findings=(RACE,)))
    assert asking.ask(program, MODEL, question).engine == "protocol"
    assert names == ["protocol"]
    names = asked(protocol=Answer(verdict="proved"))
    assert asking.ask(wide(), MODEL, question).verdict == "proved"
    names = asked(
        protocol=Answer(verdict="unknown", reasons=(why("p"),)), explicit=Answer(verdict="unknown", reasons=(why("e"),))
    )
    assert asking.ask(wide(), MODEL, question).reason == "p"
    assert names == ["protocol", "explicit"]


def test_a_litmus_test_that_the_kernel_engine_is_slow_with_is_looked_at_by_the_other_first(
    asked: Callable[..., list[str]],
) -> None:
    program, question = parse(MP, "mp.litmus"), Question(about=Completeness.FINDINGS, timeout=60)
    late = Answer(verdict="unknown", reasons=(timeout_reason(10),), complete=False)
    names = asked(protocol=late, explicit=Answer(verdict="finding", findings=(RACE,)))
    assert asking.ask(program, MODEL, question).engine == "explicit"
    assert names == ["protocol", "explicit"]
    names = asked(protocol=late, explicit=late)
    assert asking.ask(program, MODEL, question).cut
    assert names == ["protocol", "explicit", "protocol"]


@pytest.mark.daily(days=4, least=0)
def test_a_spin_on_contents_that_nobody_knows_has_an_answer() -> None:
    """The protocol engine follows it round by round."""
    text = "PTX spin\n{ .shared .u32 s; }\nP@cta 0 { L: ld.shared.u32 r0, [s]; if (r0 == 1) { bra L; } }\n"
    given = asking.ask(parse(text, "spin.litmus"), MODEL, Question(about=Completeness.FINDINGS, timeout=8))
    assert [f.code for f in given.findings] == ["DEAD001"]


def test_a_second_attempt_is_for_those_that_ran_out_of_time(asked: Callable[..., list[str]]) -> None:
    program = parse(MP, "mp.litmus")
    names = asked(
        explicit=Answer(verdict="unknown", reasons=(timeout_reason(4),), complete=False),
        protocol=Answer(verdict="unknown", reasons=(why("races"),), complete=False),
    )
    assert asking.ask(program, MODEL, Question(timeout=60)).reason == "races; no answer within 4 s"
    assert names == ["explicit", "protocol", "explicit"]


def test_engines_that_differ_are_an_error() -> None:
    clean = Answer(verdict="proved", covered=True, engine="z3")
    racy = Answer(verdict="finding", covered=True, findings=(RACE,), engine="protocol")
    with pytest.raises(InternalError, match="protocol finds race, z3 finds nothing"):
        agreement.agree_on_findings([racy, clean])
    partly = replace(clean, covered=False, reasons=(timeout_reason(4),))
    assert agreement.agree_on_findings([racy, partly]).engine == "protocol"
    passed, failed = Answer(verdict="pass"), Answer(verdict="fail", engine="z3")
    with pytest.raises(InternalError, match="explicit says pass, z3 says fail"):
        agreement.agree_on_states(passed, failed, Question())
    assert agreement.agree_on_states(passed, replace(passed, engine="z3"), Question()).engine == "explicit and z3"


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (Answer(verdict="pass", covered=True), "proved"),
        (Answer(verdict="pass", covered=True, findings=(NOTE,)), "proved"),
        (Answer(verdict="pass", findings=(RACE,)), "finding"),
        (Answer(verdict="unknown", covered=False, findings=(RACE,), reasons=(timeout_reason(4),)), "finding"),
        (Answer(verdict="unknown", covered=False, reasons=(timeout_reason(4),)), "unknown"),
        (Answer(verdict="pass", covered=False, reasons=(Reason(Cause.BOUND, "2 rounds"),)), "bounded"),
        (Answer(verdict="pass"), "unknown"),
    ],
)
def test_proved_needs_all_executions(given: Answer, verdict: str) -> None:
    got = add_verdict(given)
    assert got.verdict == verdict
    assert (got.reason is None) == (verdict in ("proved", "finding") and given.reason is None)


BARRIER = """PTX barrier
{ .global .u32 met = 0; }
P@cta 0..2, warp 0, lane 0 {
  for k in 0..2 { red.release.gpu.global.add.u32 [met], 1; await ld.acquire.gpu.global.u32 r0, [met] >= MANY; }
}
"""


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize(("many", "engine"), [("2*(k + 1)", "protocol"), ("k + 1", "explicit")])
def test_an_answer_about_every_execution_of_the_model_settles_a_litmus_test(many: str, engine: str) -> None:
    """Where orders of the steps are all that was followed, the executions are enumerated too."""
    program = parse(BARRIER.replace("MANY", many), "barrier.litmus")
    given = asking.ask(program, MODEL, Question(about=Completeness.FINDINGS))
    assert (add_verdict(given).verdict, given.engine) == ("proved", engine)
    assert any("interleaving" in text for text in given.assumptions) is False
