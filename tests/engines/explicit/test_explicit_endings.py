"""A program of which no execution ends: the answer says so and why; an engine that lost the executions is caught."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.errors import InternalError
from mcheck.cat import load_model, parse_model
from mcheck.cat.ast import Model
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.search.no_executions import STOPPED
from mcheck.engines.search.search import Run
from mcheck.engines.z3.engine import answer as z3
from mcheck.events.choices import barrier_generations
from mcheck.frontend.litmus import parse

Engine = Callable[..., Answer]
ENGINES = pytest.mark.parametrize("engine", [explicit, z3], ids=["explicit", "z3"])

DIFFERENT_BARRIERS = """
{ .shared .u32 x; }
P@cta 0 { bar.sync 0; }
Q@cta 0 { bar.sync 1; }
"""
NEVER_SET = """
{ .global .u32 f; }
P@cta 0 { await ld.acquire.gpu.global.u32 r0, [f] == 1; }
"""
COUNT_NOT_MET = """
{ x = 0; }
 P0@cta 1,gpu 0         ;
 bar.cta.arrive 1, 1, 2 ;
 st.weak x, 1           ;
"""
ALWAYS_MISUSED = """
{ .shared .u32 x; .shared .align 8 .b64 bar; }
P@cta 0 { mbarrier.init.shared::cta.b64 [bar], 0; }
"""
UNKNOWN_BEHIND_A_MISUSE = """
{ .global .u32 n; .shared .u32 s[8]; .global .u32 g[8]; .shared .align 8 .b64 bar; }
P@cta 0 {
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
  div.u32 r1, 1, 0;
  st.global.u32 [g + r1], 1;
}
"""
STORE = """
{ x = 0; }
 P0@cta 0,gpu 0 ;
 st.weak x, 1   ;
"""


def ask(engine: Engine, text: str, condition: str, model: Model, **options: object) -> Answer:
    return engine(parse(f"PTX t{text}{condition}\n", "t.litmus"), model, findings=False, **options)


@ENGINES
@pytest.mark.parametrize("verdict_only", [False, True])
@pytest.mark.parametrize(
    ("text", "model", "code"),
    [
        (DIFFERENT_BARRIERS, "ptx-9.0", "DEAD002, wait forever: P at bar.sync 0; Q at bar.sync 1"),
        (NEVER_SET, "ptx-9.0", "DEAD004, wait forever: P at await"),
        (COUNT_NOT_MET, "ptx-7.5", "DEAD002, wait forever: P0 at bar.cta.arrive 1, 1, 2"),
    ],
    ids=["barriers", "flag", "count"],
)
@pytest.mark.parametrize(
    ("condition", "verdict"), [("exists (true)", "fail"), ("forall (true)", "pass"), ("~exists (true)", "pass")]
)
def test_a_wait_that_never_ends_is_named(
    engine: Engine, text: str, model: str, code: str, condition: str, verdict: str, *, verdict_only: bool
) -> None:
    found = ask(engine, text, condition, load_model(model), verdict_only=verdict_only)
    assert (found.verdict, found.outcomes) == (verdict, ())
    assert (found.reason or "").startswith(f"no execution ends: {code}")
    assert [f.kind for f in found.findings] == ["deadlock"]


@ENGINES
def test_a_misuse_on_every_way_is_the_reason(engine: Engine) -> None:
    found = ask(engine, ALWAYS_MISUSED, "forall (true)", load_model("ptx-9.0"))
    assert (found.verdict, found.outcomes, found.undefined) == ("fail", (), True)
    assert "UB205" in (found.reason or "")


@ENGINES
def test_a_misuse_before_what_is_not_known_is_the_reason(engine: Engine) -> None:
    found = ask(engine, UNKNOWN_BEHIND_A_MISUSE, "exists (true)", load_model("ptx-9.0"))
    assert found.undefined
    assert "UB201" in (found.reason or "")


@ENGINES
def test_a_model_that_forbids_everything_is_named(engine: Engine) -> None:
    never = parse_model('"never"\nempty W as Never\n', "never.cat")
    found = ask(engine, STORE, "exists (x == 1)", never)
    assert found.verdict == "fail"
    assert found.reason == "no execution ends: the model forbids all of them (Never)"


@ENGINES
@pytest.mark.parametrize("prop", ["spec", "liveness"])
def test_executions_that_an_engine_loses_are_an_error(
    engine: Engine, prop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier_generations, "dynamic_choices", lambda *_: None)
    with pytest.raises(InternalError, match="the program has no execution"):
        ask(engine, STORE, "exists (x == 1)", load_model("ptx-9.0"), prop=prop)


@ENGINES
def test_what_is_undefined_and_is_not_found_is_no_proof(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(f"PTX t{ALWAYS_MISUSED}", "t.litmus")
    assert add_verdict(engine(program, load_model("ptx-9.0"), findings=True)).verdict == "finding"
    monkeypatch.setattr(Run, "_misused", lambda *_, **__: True)
    monkeypatch.setattr("mcheck.engines.search.verdict.why_none_ends", lambda _: STOPPED)
    assert add_verdict(engine(program, load_model("ptx-9.0"), findings=True)).verdict == "unknown"
