"""A bug in a ring of one stage, as text: the cause leads, and the fix names its lines."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.report import checked
from mcheck.report.lines import plain

RING = """PTX ring
{
  .global .align 128 .b8 src[1024];
  .shared .align 128 .b8 tile[128];
  .shared .b64 full, empty;
}
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  for k in 0..3 {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k+1)%2;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src + 128*k], 128, [full];
  }
}
consumer@cta 0, warp 1 {
  bar.sync 0;
  for k in 0..3 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
    ld.shared.u32 r0, [tile + 4*%laneid];
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) { fence.proxy.async; mbarrier.arrive.shared::cta.b64 _, [empty]; }
  }
}
"""
WAIT = "await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;"
BACK = "if (%laneid == 0) { fence.proxy.async; mbarrier.arrive.shared::cta.b64 _, [empty]; }"
TOLD = {
    "never given back": (
        BACK,
        "",
        ("deadlock: line 12 (producer) waits", "`empty`: who uses what line 13 fills has to arrive on it afterwards"),
    ),
    "too few bytes": (
        "[full], 128;\n    cp",
        "[full], 64;\n    cp",
        ("Expect 128 bytes at line 13 instead of 64",),
    ),
    "too many bytes": (
        "[full], 128;\n    cp",
        "[full], 256;\n    cp",
        ("Expect 128 bytes at line 13 instead of 256",),
    ),
    "no wait": (WAIT, "", ("RACE003]: `tile` is read without waiting", "also: UB212")),
}


def report(text: str) -> str:
    return "\n".join(
        plain(line) for line in checked.describe(check_case(Case("ring.litmus", text=text), Settings(), Options()))
    )


@pytest.mark.parametrize("bug", TOLD)
def test_a_bug_is_one_finding_that_names_its_lines(bug: str) -> None:
    old, new, told = TOLD[bug]
    assert RING.count(old) == 1
    text = report(RING.replace(old, new))
    assert text.count("error[") + text.count("review[") == 1, text
    for part in told:
        assert part in text


def test_who_only_waits_for_the_deadlocked_is_left_out() -> None:
    idle = "idle@cta 0, warp 2 {\n  bar.sync 0;\n  bar.sync 1;\n}\n"
    met = RING.replace("  }\n}\nconsumer", "  }\n  bar.sync 1;\n}\nconsumer").removesuffix("}\n") + "  bar.sync 1;\n}\n"
    text = report((met + idle).replace(BACK, ""))
    assert "line 12 (producer) waits" in text
    assert "barrier 1" not in text
    assert "idle" not in text
