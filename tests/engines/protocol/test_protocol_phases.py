"""Which phase of an mbarrier an operation falls into: every order that time allows, beside the explicit engine."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

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


def test_a_copy_that_traps_has_read_its_map() -> None:
    """The map was edited without a fence: that shows beside the coordinate that is undefined."""
    test = parse(
        """PTX edited
{
  .global .align 16 .u32 g[4] = {1, 2, 3, 4};
  .global .tensormap gm = { global_address = g, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
    box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .u32 s[4];
}
P@cta 0 {
  mov.u64 %rd7, g;
  tensormap.replace.tile.global_address.global.b1024.b64 [gm], %rd7;
  cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [gm, {1}], [s];
}
""",
        "edited.litmus",
    )
    given = check(test, load_model("ptx-9.0")).findings
    assert (
        {f.code for f in given}
        == {"RACE009", "UB401"}
        == {f.code for f in answer(test, load_model("ptx-9.0")).findings}
    )
