"""Races with loads whose value nothing uses stay findings, and say so."""

from __future__ import annotations

import pytest

from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.report import checked
from mcheck.report.lines import plain

MODULE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<3>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
  setp.lt.u32 %p1, %r1, 32;
  st.shared.u32 [%r3], %r1;
  xor.b32 %r4, %r2, 128; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4; mov.u32 %r6, 0;
  ld.shared.u32 %r6, [%r5];
  USE
  ret;
}
"""
LAUNCH = {"entry": "k", "grid": 1, "block": 64, "params": {"out": {"buffer": 256}}}


def check(use: str) -> Result:
    """The answer about a block of two warps that reads what the other one writes, and makes this of it."""
    return check_text(MODULE.replace("USE", use), "k.ptx", from_object(LAUNCH), Settings(), Options())


@pytest.mark.daily
@pytest.mark.parametrize(
    ("use", "value"),
    [
        ("", "unused"),
        ("mov.u32 %r7, %r6; add.u32 %r8, %r7, 1;", "unused"),
        ("selp.u32 %r7, %r6, %r1, %p1; st.global.u32 [%rd1], %r7;", "chosen"),
        ("selp.u32 %r7, %r6, %r1, %p1; add.u32 %r7, %r7, %r6; st.global.u32 [%rd1], %r7;", ""),
        ("setp.eq.u32 %p2, %r6, 0; selp.u32 %r7, 1, %r1, %p2; st.global.u32 [%rd1], %r7;", ""),
        ("setp.eq.u32 %p2, %r6, 0; @%p2 bra END; bar.sync 0; END:", ""),
    ],
)
def test_what_becomes_of_a_value_that_is_read(use: str, value: str) -> None:
    found = check(use)
    assert found.verdict == "finding"
    reads = {a.value for f in found.findings if f.code == "RACE001" for a in f.accesses if a.access == "read"}
    assert reads == {value}
    assert not any(a.value for f in found.findings for a in f.accesses if a.access == "write")


def test_who_leaves_the_value_that_another_thread_stores() -> None:
    found = check("add.u32 %r7, %r6, 1; @%p1 st.shared.u32 [%r3], %r7;")
    reads = {(a.thread[:5], a.value) for f in found.findings for a in f.accesses if a.access == "read"}
    assert reads == {("warp0", ""), ("warp1", "left")}


def test_a_store_for_several_lanes_is_theirs_too() -> None:
    """The program has it once; and what decides about a store, or where it is, is used."""
    for use in ("st.global.u32 [%rd1], %r6;", "@%p1 st.global.u32 [%rd1], %r6;"):
        found = check(f"mov.u32 %r6, 5; ld.shared.u32 %r6, [%r5]; add.u32 %r7, %r6, 1; {use}")
        assert not any(a.value == "left" for f in found.findings for a in f.accesses if a.thread.startswith("warp0"))
    used = check("setp.eq.u32 %p2, %r6, 0; setp.lt.and.u32 %p3, %r1, 32, %p2; @%p3 st.global.u32 [%rd1], %r1;")
    assert not any(a.value == "left" for f in used.findings for a in f.accesses)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("", "    = note: nothing uses the value that is read, so that this race changes no result"),
        (
            "selp.u32 %r7, %r6, %r1, %p1; st.global.u32 [%rd1], %r7;",
            "    = note: the value that is read is used only where a `selp` takes it",
        ),
    ],
)
def test_the_finding_says_it(use: str, said: str) -> None:
    text = [plain(line) for line in checked.describe(check(use))]
    assert any(line.startswith(said) for line in text)
    assert not any("note" in plain(line) for line in checked.describe(check("st.global.u32 [%rd1], %r6;")))
