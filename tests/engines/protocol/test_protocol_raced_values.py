"""Values that a race leaves, where something depends on them: not all of them are followed, and the answer says so."""

from __future__ import annotations

import pytest

from mcheck.base.reasons import Cause
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

LATE = """PTX late
{ .global .align 16 .u32 f[4] = {1, 1, 1, 1}; .shared .align 16 .u32 s[4]; .shared .align 8 .b64 bar, other; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [f], 16, [bar];
  await mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 [bar], 0;
  ld.shared.u32 r0, [s];
  if (r0 == 2) { mbarrier.arrive.shared::cta.b64 _, [other]; }
}
"""
WORDS = """PTX words
{ .global .align 8 .u64 x; .shared .align 8 .b64 bar; }
P@cta 0, warp 0, lane 0 { st.global.u64 [x], 0x100000001; }
Q@cta 0, warp 0, lane 1 { ld.global.u32 r0, [x + 4]; if (r0 == 0) { mbarrier.arrive.shared::cta.b64 _, [bar]; } }
"""


def test_a_race_that_is_accepted_is_no_proof() -> None:
    """Stale contents of the buffer lead to an arrival on what is no mbarrier (UB201), which the engine does not see."""
    given = check(parse(LATE, "late.litmus"), load_model("ptx-9.0"), thorough=True)
    assert {f.code for f in given.findings} == {"RACE003"}
    assert not given.covered
    assert [r.cause for r in given.reasons] == [Cause.INTERLEAVINGS]
    fine = LATE.replace(".relaxed.cta", "")
    assert check(parse(fine, "fine.litmus"), load_model("ptx-9.0"), thorough=True).verdict == "proved"


def test_a_race_that_decides_nothing_leaves_nothing_open() -> None:
    text = LATE.replace("if (r0 == 2) { mbarrier.arrive.shared::cta.b64 _, [other]; }", "")
    given = check(parse(text, "late.litmus"), load_model("ptx-9.0"), thorough=True)
    assert {f.code for f in given.findings} == {"RACE003"}
    assert given.covered


@pytest.mark.parametrize("model", ["sc", "ptx-7.5", "ptx-6.0"])
def test_without_races_in_the_model_no_order_is_taken_for_granted(model: str) -> None:
    given = check(parse(WORDS, "words.litmus"), load_model(model))
    assert (given.verdict, [r.cause for r in given.reasons]) == ("bounded", [Cause.INTERLEAVINGS])
