"""What findings say of themselves in text: the action, the bytes, the buffer, the lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.answers.number_text import format_ranges
from mcheck.findings.finding import Access
from mcheck.tools.cli.main import main

ENGINES = ("protocol", "explicit", "z3")
HALF = """PTX half-of-the-bytes
{ .global .align 16 .b8 src[64]; .shared .align 16 .b8 buf[64]; .shared .align 8 .b64 bar; }
p@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], COUNT;
  bar.sync 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
}
c@cta 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
"""
STORE = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd0, [a];
  cvta.to.global.u64 %rd1, %rd0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3+16], %r0;
  ret;
}
"""


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["check", *arguments])
    return capsys.readouterr().out


@pytest.mark.daily
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_phase_that_lacks_bytes_says_how_many(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: str, count: int
) -> None:
    """Whether the arrivals have come or not: correcting their number alone would end in the same wait."""
    (tmp_path / "a.litmus").write_text(HALF.replace("COUNT", str(count)))
    text = said(capsys, str(tmp_path / "a.litmus"), "--engine", engine)
    (missing,) = (line for line in text.split("\n") if "fix:" in line)
    if count == 1:
        assert "Expect 16 bytes at line 6 instead of 32: line 7 completes 16" in missing
    else:
        assert "32 bytes" in missing
        assert "16 came" in missing
        assert "1 of 2 arrivals" in missing


@pytest.mark.parametrize("engine", ENGINES)
def test_a_byte_count_given_to_an_arrive_is_pointed_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: str
) -> None:
    meant, written = "arrive.expect_tx.shared::cta.b64 _, [bar], 32", "arrive.shared::cta.b64 _, [bar], 16"
    text = HALF.replace("COUNT", "1").replace(meant, written)
    (tmp_path / "a.litmus").write_text(text)
    text = said(capsys, str(tmp_path / "a.litmus"), "--engine", engine)
    assert "UB205" in text
    assert "fix: The operand of an arrive is a number of arrivals" in text
    assert "mbarrier.arrive.expect_tx" in text


@pytest.mark.daily
@pytest.mark.parametrize(
    ("size", "told"),
    [
        (64, "an access of 4 bytes is outside every object: it begins at the end of `a`, which has 64 bytes"),
        (142, "an access of 4 bytes leaves object `a`: it begins at byte 140 of its 142"),
        (8, "an access of 4 bytes is outside every object: it begins 8 bytes after the end of `a`, which has 8 bytes"),
    ],
)
def test_an_access_outside_a_buffer_names_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, size: int, told: str
) -> None:
    (tmp_path / "k.ptx").write_text(STORE)
    shape = ("--grid", "1", "--block", "32", "--param", f'a={{"buffer": {size}}}')
    text = said(capsys, str(tmp_path / "k.ptx"), *shape)
    assert "UB103" in text
    assert told in text


def test_an_address_that_is_near_nothing_names_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(STORE)
    text = said(capsys, str(tmp_path / "k.ptx"), "--grid", "1", "--block", "32", "--param", "a=0")
    assert "an access of 4 bytes is outside every object: its address is the number 0x10\n" in text


@pytest.mark.parametrize(
    ("instruction", "access", "action"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [bar]", "read", "arrive"),
        ("mbarrier.arrive_drop.shared::cta.b64 _, [bar]", "read", "arrive"),
        ("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16", "read", "arrive"),
        ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]", "write", "arrive"),
        ("await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0", "read", "wait"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16", "read", "expect-tx"),
        ("mbarrier.init.shared::cta.b64 [bar], 1", "write", "init"),
        ("ld.shared.u32 r0, [mbarrier]", "read", "read"),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar]",
            "write",
            "write",
        ),
    ],
)
def test_what_an_access_does(instruction: str, access: str, action: str) -> None:
    assert Access(thread="p", instruction=instruction, access=access).action == action


def test_an_arrive_is_no_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = """PTX arrive-before-init
{ .shared .align 8 .b64 bar; }
p@cta 0 { mbarrier.arrive.shared::cta.b64 _, [bar]; }
c@cta 0 { mbarrier.init.shared::cta.b64 [bar], 1; }
"""
    (tmp_path / "a.litmus").write_text(text)
    text = said(capsys, str(tmp_path / "a.litmus"))
    assert "arrive by p on `bar`" in text
    assert "read by p" not in text


def test_lanes_that_are_apart_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = """PTX two-lanes
{ .global .u32 x[4]; }
w@cta 0, warp 0 { if (%laneid % 16 == 0) { st.global.u32 [x + 64], 1; } }
"""
    (tmp_path / "a.litmus").write_text(text)
    text = said(capsys, str(tmp_path / "a.litmus"), "--engine", "protocol")
    assert "w[0, 16]" in text
    assert "w[0..16]" not in text


def test_numbers_as_ranges() -> None:
    assert format_ranges([0, 16]) == "0, 16"
    assert format_ranges([0, 1, 2, 5, 7, 8]) == "0..2, 5, 7..8"
    assert format_ranges(range(0, 12, 2)) == "0, 2, 4, 6, …"


WAIT = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 flag, .param .u64 data) {
  .reg .u64 %f, %d;
  .reg .u32 %t, %v;
  .reg .pred %p;
  ld.param.u64 %f, [flag];
  ld.param.u64 %d, [data];
  mov.u32 %t, %tid.x;
  setp.ge.u32 %p, %t, 32;
  @%p bra OTHER;
AGAIN:
  ld.acquire.gpu.global.u32 %v, [%f];
  setp.ne.u32 %p, %v, 7;
  @%p bra AGAIN;
OTHER:
  st.global.u32 [%d], %t;
  ret;
}
"""


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("held", ["", ', "init": {"hex": "07000000"}'])
def test_a_race_behind_a_wait_for_unknown_contents_says_what_it_depends_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, held: str
) -> None:
    """One warp passes its wait only if the flag holds 7."""
    (tmp_path / "k.ptx").write_text(WAIT)
    shape = ("--grid", "1", "--block", "64", "--param", f'flag={{"buffer": 4{held}}}', "--param", 'data={"buffer": 4}')
    text = said(capsys, str(tmp_path / "k.ptx"), *shape)
    assert "RACE001" in text
    assert ("note: only if what `flag` holds ends the wait at line 14\n" in text) == (not held)
