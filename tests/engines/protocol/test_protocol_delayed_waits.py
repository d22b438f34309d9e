"""A look that sees a copy issued behind it: no interleaving shows it, so such a program is not called proved."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program

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
    assert "a wait may observe" in (found.reason or "") or "test_wait" in (found.reason or "")


@pytest.mark.parametrize("name", HELD)
def test_what_holds_the_copy_back_is_proved(name: str) -> None:
    model = load_model("ptx-9.0")
    assert answer(program(HELD[name]), model, findings=True, timeout=60).findings == ()
    found = check(program(HELD[name]), model, timeout=30)
    assert (found.verdict, found.findings) == ("proved", ())


TWICE = """PTX twice
{ .shared .align 8 .b64 b; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], COUNT; mbarrier.arrive.shared::cta.b64 _, [b], COUNT;
  mbarrier.LOOK.parity.shared::cta.b64 %p1, [b], 0; BEHIND mbarrier.arrive.shared::cta.b64 _, [b];
}
"""


@pytest.mark.parametrize(
    ("count", "look", "behind", "codes"),
    [
        # Behind the arrival the try_wait finds the phase after the next: none has seen the first one end (9.7.13.15.4).
        ("1", "try_wait", "", {"UB212"}),
        ("2", "try_wait", "", set()),
        ("1", "test_wait", "", set()),
        ("1", "try_wait", "fence.acq_rel.cta;", set()),
    ],
)
def test_a_late_look_may_not_have_seen_the_phase_before_the_next_arrival(
    count: str, look: str, behind: str, codes: set[str]
) -> None:
    text = TWICE.replace("COUNT", count).replace("LOOK", look).replace("BEHIND", behind)
    p, model = parse(text, "twice.litmus"), load_model("ptx-9.0")
    assert {f.code for f in answer(p, model, findings=True, timeout=60).findings} == codes
    found = check(p, model, timeout=30)
    assert found.verdict == ("bounded" if look == "try_wait" and not behind else "proved"), found


ENDED = """PTX ended
{ .shared .align 8 .b64 b; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  bar.sync 0;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 16;
  await mbarrier.test_wait.parity.shared::cta.b64 [b], 0;
  END
}
Q@cta 0 {
  bar.sync 0;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 32;
  mbarrier.arrive.shared::cta.b64 _, [b];
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [b], 0; BEHIND
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 16;
}
"""


@pytest.mark.parametrize(
    ("end", "behind", "codes"),
    [
        # The bytes behind the try_wait may come first, with them the end of the object.
        ("mbarrier.inval.shared::cta.b64 [b];", "", {"UB201"}),
        ("mbarrier.inval.shared::cta.b64 [b];", "fence.acq_rel.cta;", set()),
        ("", "", set()),
    ],
)
def test_a_late_look_may_find_no_object(end: str, behind: str, codes: set[str]) -> None:
    p, model = parse(ENDED.replace("END", end).replace("BEHIND", behind), "ended.litmus"), load_model("ptx-9.0")
    assert {f.code for f in answer(p, model, findings=True, timeout=60).findings} == codes
    found = check(p, model, timeout=30)
    assert found.verdict == ("bounded" if codes else "proved"), found
