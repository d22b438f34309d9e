"""RACE010 names the scope that is too narrow, where it stands, and which one would do; every engine does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.answers.verdict_rules import makes_undefined
from mcheck.cat import load_model
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Completeness, Question
from mcheck.findings.finding import Finding
from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program

LITMUS = Path(__file__).parents[2] / "litmus"
MESSAGE = """PTX scopes
{ x = 0; y = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0       ;
 st.weak x, 1          | ld.acquire.gpu r0, y ;
 st.release.cta y, 1   | ld.weak r1, x        ;
exists (P1:r0 == 1)
"""
FENCES = """PTX fences
{ x = 0; y = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.relaxed.gpu r0, y  ;
 fence.acq_rel.gpu     | fence.acq_rel.cta     ;
 st.relaxed.gpu y, 1   | ld.weak r1, x         ;
exists (P1:r0 == 1)
"""
ENGINES = pytest.mark.parametrize("engine", ["explicit", "z3", "protocol"])


def narrow(program: Program, engine: str) -> Finding:
    question = Question(about=Completeness.FINDINGS, findings=True, timeout=60)
    found = ask_engine(engine, program, load_model("ptx-9.0"), question, 60)
    (finding,) = [f for f in found.findings if f.code == "RACE010" and f.accesses[0].object != "y"]
    return finding


@ENGINES
def test_the_narrow_end_is_named(engine: str) -> None:
    finding = narrow(parse(MESSAGE, "t.litmus"), engine)
    assert "'st.release.cta y, 1' at line 5 has scope .cta" in finding.message
    assert "ld.acquire.gpu" not in finding.message
    assert finding.missing == "Give scope .gpu (.release.gpu) at line 5."
    assert not makes_undefined(finding)


@ENGINES
def test_a_narrow_fence_is_named(engine: str) -> None:
    finding = narrow(parse(FENCES, "t.litmus"), engine)
    assert "'fence.acq_rel.cta' at line 5 has scope .cta, but the other thread is in another cluster" in finding.message
    assert "gpu" in finding.missing


@ENGINES
def test_a_race_with_a_copy_is_undefined_all_the_same(engine: str) -> None:
    finding = narrow(load(str(LITMUS / "bulk" / "bulk-slot-released-at-narrow-scope.litmus")), engine)
    assert re.search(r"at line 28 and .* at line 15 have scope \.cta", finding.message)
    assert ".cluster" in finding.missing
    assert makes_undefined(finding)


@pytest.mark.parametrize("engine", ["explicit", "z3"])
@pytest.mark.parametrize("name", ["proxies/Surf+wrong-fence", "scopes/MP+alias-of-flag+narrow-fences"])
def test_no_scope_is_missing_where_none_would_order_the_accesses(name: str, engine: str) -> None:
    question = Question(about=Completeness.FINDINGS, findings=True, timeout=60)
    found = ask_engine(engine, load(str(LITMUS / f"{name}.litmus")), load_model("ptx-9.0"), question, 60)
    assert {f.code for f in found.findings} == {"RACE001"}


COUNTER = """PTX counter
{{ .global .u32 x; }}
P@cta 0 {{
  {one};
}}
Q@cta 1 {{
  {other};
}}
exists (x == 1)
"""
ADD = "atom.relaxed.{scope}.global.add.u32 r0, [x], 1"


@pytest.mark.daily
@ENGINES
@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (ADD.format(scope="cta"), ADD.format(scope="gpu"), "Give scope .gpu at line 4: strong accesses"),
        (ADD.format(scope="cta"), ADD.format(scope="cta"), "Give scope .gpu at line 4 and at line 7: strong accesses"),
        (ADD.format(scope="cta"), "st.global.u32 [x], 1", "Release after the first access"),
        ("ld.volatile.global.u32 r0, [x]", "st.relaxed.cta.global.u32 [x], 1", "Give scope .gpu at line 7: strong"),
    ],
)
def test_strong_accesses_that_race_are_told_the_scope(one: str, other: str, says: str, engine: str) -> None:
    """What they lack is no order (8.7)."""
    program = parse(COUNTER.format(one=one, other=other), "t.litmus")
    given = ask_engine(engine, program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60), 60)
    told = [f.missing for f in given.findings if f.code == "RACE001"]
    assert told
    assert all(t.startswith(says) for t in told)
    assert all("elease after the first access" in t for t in told)
