"""A look that sees a copy issued behind it: no interleaving shows it, so such a program is not called proved."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.explore.engine import answer
from mcheck.kernel.engine import check
from mcheck.program.program import Program
from mcheck.syntax import parse

HEAD = """PTX late
{
  .global .align 16 .u32 src[4];
  .shared .align 16 .u32 dst[4];
  .shared .align 8 .b64 full, over;
  .global .u32 d = 0;
}
"""
START = "mbarrier.init.shared::cta.b64 [full], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;"
LOOK = "mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [dst], [src], 16, [full];"
WAIT = "await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;"
SEEN = "@%p1 st.global.u32 [d], 1;"
BESIDE = "P1@cta 0 { st.global.u32 [d], 2; }\n"

LATE = {
    "own copy": f"P0@cta 0 {{ {START} {LOOK} {COPY} {SEEN} {WAIT} }}\n" + BESIDE,
    "behind a proxy fence": f"P0@cta 0 {{ {START} {LOOK} fence.proxy.async; {COPY} {SEEN} {WAIT} }}\n" + BESIDE,
    "another's copy behind a barrier": f"P0@cta 0 {{ {START} {LOOK} bar.sync 1, 64; {SEEN} {WAIT} }}\n"
    f"P2@cta 0 {{ bar.sync 1, 64; {COPY} {WAIT} }}\n" + BESIDE,
}
HELD = {
    "behind a memory fence": f"P0@cta 0 {{ {START} {LOOK} fence.acq_rel.cta; {COPY} {SEEN} {WAIT} }}\n" + BESIDE,
    "where the look was false": f"P0@cta 0 {{ {START} {LOOK} @!%p1 {COPY} {SEEN} @!%p1 {WAIT} }}\n" + BESIDE,
    "an answer that decides nothing": f"P0@cta 0 {{ {START} {LOOK} {COPY} {WAIT} }}\n" + BESIDE,
}


def program(body: str) -> Program:
    return parse(HEAD + body, "late.litmus")


@pytest.mark.parametrize("name", LATE)
def test_a_late_look_is_bounded(name: str) -> None:
    model = load_model("ptx-9.0")
    assert any(f.code == "RACE001" for f in answer(program(LATE[name]), model, findings=True, timeout=60).findings)
    found = check(program(LATE[name]), model, timeout=30)
    assert found.verdict == "bounded", found
    assert "look" in (found.reason or "") or "test_wait" in (found.reason or "")


@pytest.mark.parametrize("name", HELD)
def test_what_holds_the_copy_back_is_proved(name: str) -> None:
    model = load_model("ptx-9.0")
    assert answer(program(HELD[name]), model, findings=True, timeout=60).findings == ()
    found = check(program(HELD[name]), model, timeout=30)
    assert (found.verdict, found.findings) == ("proved", ())
