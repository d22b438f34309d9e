"""Which phase of an mbarrier an operation falls into: every order that time allows, beside the exhaustive engine."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.explore.engine import answer
from mcheck.kernel.engine import check
from mcheck.syntax import parse

COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf + {at}], [src + {at}], 16, [full];\n"
UNANNOUNCED = {
    "no-expectation": COPY.format(at=0),
    "one-of-two-announced": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 16;\n"
    + COPY.format(at=0)
    + COPY.format(at=16),
}


@pytest.mark.parametrize("copies", UNANNOUNCED.values(), ids=UNANNOUNCED)
def test_a_completion_may_come_behind_a_later_arrive_of_its_thread(copies: str) -> None:
    """Nobody has waited for it: the arrive can complete the phase before, and what is read then is still in flight."""
    test = parse(
        f"""PTX unannounced
{{
  .global .align 16 .u32 src[8];
  .shared .align 16 .u32 buf[8];
  .shared .align 8 .b64 full;
}}
P@cta 0 {{
  mbarrier.init.shared::cta.b64 [full], 1;
  {copies}
  mbarrier.arrive.shared::cta.b64 _, [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  ld.shared.u32 r0, [buf];
}}
""",
        "unannounced.litmus",
    )
    model = load_model("ptx-9.0")
    found = {f.code for f in check(test, model).findings}
    assert {"RACE003", "DEAD003", "UB216"} <= found
    assert found == {f.code for f in answer(test, model, findings=True).findings}
