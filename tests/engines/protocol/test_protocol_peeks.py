"""A look at an mbarrier before the loop that waits for it: one execution, where it only saves the wait."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse

MODEL = load_model("ptx-9.0")
TEXT = """PTX peek
{{
  .global .align 16 .u32 src[4] = {{7, 7, 7, 7}};
  .shared .align 16 .u32 buf[4];
  .shared .b64 full;
}}
P@cta 0, warp 0, lane 0 {{
  mbarrier.init.shared::cta.b64 [full], 1;
  bar.sync 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
}}
Q@cta 0, warp 1, lane 0 {{
  .reg .pred p, q;
  bar.sync 0;
  mbarrier.{peek}.parity.shared::cta.b64 p, [full], 0;
  @p bra GO;
  {loop}
  GO: ld.shared.u32 r0, [buf];
  {behind}
}}
"""
LOOP = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 {to}, [full], {parity}; @{sense} bra WAIT;"


@pytest.mark.daily
@pytest.mark.parametrize("peek", ["try_wait", "test_wait"])
@pytest.mark.parametrize(
    ("loop", "behind", "one"),
    [
        (LOOP.format(to="p", parity=0, sense="!p"), "", True),
        (LOOP.format(to="p", parity=1, sense="!p"), "", False),
        (LOOP.format(to="p", parity=0, sense="p"), "", False),
        (LOOP.format(to="q", parity=0, sense="!q"), "", False),
        (LOOP.format(to="p", parity=0, sense="!p"), "@!p st.shared.u32 [buf], 1;", False),
        ("await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;", "", True),
        ("", "", False),
    ],
)
def test_it_is_one_execution_if_nothing_else_hangs_on_it(loop: str, behind: str, one: bool, peek: str) -> None:
    program = parse(TEXT.format(peek=peek, loop=loop, behind=behind), "peek.litmus")
    question = Question(about=Completeness.FINDINGS, timeout=30, thorough=True)
    here, there = (ask(program, MODEL, question, engine) for engine in ("protocol", "explicit"))
    assert {f.code for f in here.findings} == {f.code for f in there.findings}
    assert (here.verdict == "proved" and here.executions == 1) == one
