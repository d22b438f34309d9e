"""Lanes of a warp that send to mbarriers of their own in one instruction: every one of them is signalled (9.7.9.12)."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

CTAS = 4
TEXT = """.version 8.6
.target sm_90
.address_size 64
.visible .entry send()
.reqntid 32, 1, 1
.reqnctapercluster 4, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .shared .align 16 .b8 inbox[16];
  .shared .align 8 .b8 bar[8];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, bar;
  mov.u32 %r4, inbox;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $ready;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  setp.eq.u32 %p2, %r2, SILENT;
  @%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];
  @!%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], BYTES;
$ready:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  setp.ge.u32 %p1, %r1, 4;
  @%p1 bra $sent;
  shl.b32 %r5, %r2, 2;
  add.u32 %r5, %r4, %r5;
  mapa.shared::cluster.u32 %r6, %r5, %r1;
  mapa.shared::cluster.u32 %r7, %r3, %r1;
  SEND
$sent:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3], 0;
  @!%p3 bra $sent;
  ld.shared.u32 %r8, [%r4];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}
"""
STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %r2, [%r7];"


def ask(silent: int, count: int) -> tuple[str, set[str]]:
    text = TEXT.replace("SILENT", str(silent)).replace("BYTES", str(count)).replace("SEND", STORE)
    found = check(text, {"grid": CTAS})
    return found.verdict, {f.code for f in found.findings}


def test_every_lane_signals_the_mbarrier_that_it_names() -> None:
    assert ask(CTAS, 4 * CTAS) == ("proved", set())


@pytest.mark.parametrize("silent", range(CTAS))
def test_bytes_that_nobody_announces_are_told_of_each(silent: int) -> None:
    verdict, codes = ask(silent, 4 * CTAS)
    assert (verdict, "UB216" in codes) == ("finding", True)


def test_bytes_that_do_not_come_are_waited_for() -> None:
    assert ask(CTAS, 4 * CTAS + 4) == ("finding", {"DEAD003"})
