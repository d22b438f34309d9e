"""What a finding says is missing is the fix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings.repair import apply_edits, make_edits

if TYPE_CHECKING:
    from mcheck.findings.finding import Finding


def found(text: str, engine: str) -> list[Finding]:
    return list(check_case(Case("t.litmus", text=text), Settings(timeout=60), Options(engine=engine)).findings)


GLOBAL = """PTX global
{ .global .align 8 .b64 x; }
P@cta 0 { .reg .pred p; .reg .u64 a; mov.u64 a, x; mbarrier.test_wait.parity.b64 p, [a], 0; }
"""
BEYOND = """PTX beyond
{ .shared .u32 x; }
P@cluster 0, cta 0 { .reg .u32 a; mapa.shared::cluster.u32 a, x, 5; ld.shared::cluster.u32 r0, [a]; }
"""


@pytest.mark.daily
@pytest.mark.parametrize("engine", ["protocol", "explicit", "z3"])
@pytest.mark.parametrize(
    ("text", "code", "says"),
    [(GLOBAL, "UB204", "Put the mbarrier into shared memory"), (BEYOND, "UB108", "rank below the number of CTAs")],
)
def test_the_case_at_hand_is_mended(text: str, code: str, says: str, engine: str) -> None:
    (finding,) = found(text, engine)
    assert finding.code == code
    assert says in finding.missing


FLAG = """PTX flag
{ x = 0; f = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0      ;
 st.weak x, 1        | ld.relaxed.gpu r0, f ;
 fence.acq_rel.gpu   | fence.acq_rel.gpu   ;
 st.relaxed.cta f, 1 | ld.weak r1, x       ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("engine", ["protocol", "explicit", "z3"])
def test_the_scope_of_the_flag_is_widened_where_the_fences_are_wide_enough(engine: str) -> None:
    (finding,) = (f for f in found(FLAG, engine) if f.code == "RACE010")
    assert finding.missing == "Give scope .gpu (.relaxed.gpu) at line 6."
    mended = FLAG.replace("st.relaxed.cta", "st.relaxed.gpu")
    assert "RACE010" not in {f.code for f in found(mended, engine)}


OWN = """PTX own
{ x = 0; y @ generic aliases x; }
 P0@cta 0,gpu 0 ;
 st.weak x, 1 ;
 ld.weak r0, y ;
"""
OTHER = """PTX other
{ x = 0; f = 0; y @ generic aliases x; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0                   ;
 st.weak x, 1        | await ld.acquire.gpu r0, f == 1 ;
 st.release.gpu f, 1 | ld.weak r1, y                   ;
"""


@pytest.mark.parametrize("engine", ["explicit", "z3"])
def test_accesses_by_two_addresses_lack_the_fence_of_aliases(engine: str) -> None:
    (finding,) = found(OWN, engine)
    assert finding.code == "RACE001"
    lines = OWN.splitlines()
    assert found("\n".join(apply_edits(lines, make_edits(finding.fixes, lines, table=True))), engine) == []
    (finding,) = found(OTHER, engine)
    assert finding.code == "RACE001"
    assert "fence.proxy.alias on the way from line 4 to line 5" in finding.missing
    line = OTHER.splitlines()[3]
    fence = f"{line}\n fence.proxy.alias   |                                 ;"
    assert found(OTHER.replace(line, fence), engine) == []


CP_ASYNC_RING = """PTX cp-async-ring
{ .shared .align 8 .b64 full[2]; .global .align 16 .b8 src[64]; .shared .align 16 .b8 buf[2][16]; }
producer@cta 0, warp 0, lane 0 {
  for s in 0..2 { mbarrier.init.shared::cta.b64 [full[s]], 1; }
  bar.sync 0;
  for k in 0..2 {
    cp.async.cg.shared.global [buf[k]], [src + 16*k], 16;
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full[k]];
  }
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..2 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k]], 0;
    ld.shared.u32 r0, [buf[k]];
  }
}
"""


def test_a_cp_async_that_signals_an_mbarrier_is_waited_for_there_and_not_by_its_group() -> None:
    assert not found(CP_ASYNC_RING, "protocol")
    nobody = CP_ASYNC_RING.replace("    await mbarrier.try_wait.parity.shared::cta.b64 [full[k]], 0;\n", "")
    for finding in found(nobody, "protocol"):
        assert finding.missing.startswith("Wait for the phase of the mbarrier that line 8 signals before line 14")


def test_a_wait_for_another_stage_is_named() -> None:
    (first, *_) = found(CP_ASYNC_RING.replace("r0, [buf[k]]", "r0, [buf[1 - k]]"), "protocol")
    assert first.missing.startswith("Wait for the phase of the mbarrier that line 8 signals before line 15")
    assert "The wait at line 14 is for full[0]@0, and line 8 signals full[1]@0" in first.missing
    (again,) = found(CP_ASYNC_RING.replace("[full[k]], 0", "[full[0]], 0"), "protocol")
    assert again.missing.startswith("Go on to the next stage before line 14: it waits for the phase of full[0]@0")
    assert "The wait at line 14 is for full[0]@0, and line 8 signals full[1]@0" in again.missing


def test_a_wait_that_orders_in_time_alone_is_named_where_a_proxy_fence_is_missing() -> None:
    text = (Path(__file__).parents[2] / "litmus/bulk/bulk-ring-one-slot-no-fence.litmus").read_text("utf-8")
    (finding,) = (f for f in found(text, "protocol") if f.code == "RACE006")
    assert "The wait at line 13 comes after the read in time, but orders nothing between proxies" in finding.missing
