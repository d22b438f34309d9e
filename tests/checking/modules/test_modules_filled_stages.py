"""The remark beside ``proved`` that a launch fills no stage of a ring twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.frontend.ptx.launch_reader import from_object

CORPUS = Path(__file__).parents[2] / "simt" / "corpus"
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
RING = """
.visible .entry ring(.param .u64 in, .param .u32 rounds) {
  .reg .pred %p<6>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
  .shared .align 16 .b8 buf[1536];
  ld.param.u64 %rd1, [in]; ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 4; mov.u32 %r4, buf; add.u32 %r4, %r4, %r3;
  cvt.u64.u32 %rd2, %r3; add.u64 %rd1, %rd1, %rd2;
  setp.lt.u32 %p1, %r1, 1; @%p1 bra NONE;
  cp.async.cg.shared.global [%r4], [%rd1], 16;
NONE:
  cp.async.commit_group;
  setp.lt.u32 %p1, %r1, 2; @%p1 bra ONE;
  add.u32 %r5, %r4, 512; add.u64 %rd3, %rd1, 512;
  cp.async.cg.shared.global [%r5], [%rd3], 16;
ONE:
  cp.async.commit_group;
  mov.u32 %r6, 0;
LOOP:
  setp.ge.u32 %p2, %r6, %r1; @%p2 bra DONE;
  cp.async.wait_group 1;
  bar.sync 0;
  rem.u32 %r7, %r6, 3; mul.lo.u32 %r7, %r7, 512; add.u32 %r7, %r4, %r7; ld.shared.u32 %r8, [%r7];
  add.u32 %r9, %r6, 2; setp.ge.u32 %p3, %r9, %r1; @%p3 bra LAST;
  rem.u32 %r10, %r9, 3; mul.lo.u32 %r10, %r10, 512; add.u32 %r10, %r4, %r10;
  mul.lo.u32 %r11, %r9, 512; cvt.u64.u32 %rd4, %r11; add.u64 %rd4, %rd1, %rd4;
  cp.async.cg.shared.global [%r10], [%rd4], 16;
LAST:
  cp.async.commit_group;
  add.u32 %r6, %r6, 1;
  bra LOOP;
DONE:
  ret;
}
"""
BULK = """
.visible .entry ring(.param .u64 in, .param .u32 rounds) {
  .reg .pred %p<6>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
  .shared .align 128 .b8 buf[512]; .shared .align 8 .b64 full[4];
  ld.param.u64 %rd1, [in]; ld.param.u32 %r1, [rounds];
  mov.u32 %r2, full;
  mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1;
  mbarrier.init.shared.b64 [full+16], 1; mbarrier.init.shared.b64 [full+24], 1;
  fence.proxy.async;
  mov.u32 %r6, 0;
LOOP:
  setp.ge.u32 %p2, %r6, %r1; @%p2 bra DONE;
  rem.u32 %r7, %r6, 4; div.u32 %r12, %r6, 4; and.b32 %r12, %r12, 1;
  shl.b32 %r8, %r7, 3; add.u32 %r8, %r2, %r8;
  shl.b32 %r9, %r7, 7; mov.u32 %r10, buf; add.u32 %r9, %r10, %r9;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 128, [%r8];
POLL:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r8], %r12;
  @!%p3 bra POLL;
  add.u32 %r6, %r6, 1;
  bra LOOP;
DONE:
  ret;
}
"""
TILE = """
.visible .entry ring(.param .u64 in, .param .u32 rounds) {
  .reg .pred %p<6>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
  .shared .align 16 .b8 buf[1536];
  ld.param.u64 %rd1, [in]; ld.param.u32 %r1, [rounds]; mov.u32 %r4, buf;
  mov.u32 %r6, 0;
LOOP:
  cp.async.cg.shared.global [%r4], [%rd1], 16;
  add.u32 %r4, %r4, 16; add.u32 %r6, %r6, 1;
  setp.lt.u32 %p2, %r6, %r1; @%p2 bra LOOP;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ret;
}
"""


def launch(rounds: int, block: int) -> dict[str, Any]:
    """The launch of a block of ``block`` threads."""
    return {"entry": "ring", "grid": 1, "block": block, "params": {"in": {"buffer": 65536}, "rounds": rounds}}


def filled_once(body: str, rounds: int, block: int) -> tuple[str, ...]:
    """The rings of a proved launch."""
    found = check_text(HEAD + body, "k.ptx", from_object(launch(rounds, block)), Settings(), Options())
    assert found.verdict == "proved", found.reason
    return found.filled_once


@pytest.mark.parametrize(("rounds", "names"), [(2, ("buf",)), (3, ("buf",)), (4, ()), (7, ())])
def test_a_ring_of_groups(rounds: int, names: tuple[str, ...]) -> None:
    """With two rounds the copy of the loop is not even executed."""
    assert filled_once(RING, rounds, 32) == names


@pytest.mark.parametrize(("rounds", "names"), [(1, ("buf",)), (4, ("buf",)), (5, ())])
def test_a_ring_of_mbarriers(rounds: int, names: tuple[str, ...]) -> None:
    assert filled_once(BULK, rounds, 1) == names


@pytest.mark.parametrize("rounds", [1, 9])
def test_a_tile_in_pieces_has_no_stages(rounds: int) -> None:
    """No wait stands in the loop: it never comes back to a place."""
    assert filled_once(TILE, rounds, 1) == ()


def test_several_launches_of_one_kernel() -> None:
    """One that fills a stage twice is enough."""
    for several, names in (((2, 3), ("buf",)), ((2, 4), ())):
        described = from_object({"launches": [launch(rounds, 32) for rounds in several]})
        found = check_text(HEAD + RING, "k.ptx", described, Settings(), Options())
        assert found.verdict == "proved"
        assert found.filled_once == names


@pytest.mark.daily
@pytest.mark.parametrize(("rounds", "names"), [(4, ("global_smem",)), (5, ())])
def test_a_ring_of_tensor_copies(rounds: int, names: tuple[str, ...]) -> None:
    """A producer warp of Gluon, whose ring has four stages."""
    path = CORPUS / "gluon" / "ring_sm90"
    given = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    given["params"]["6"] = rounds
    text = path.with_suffix(".ptx").read_text(encoding="utf-8")
    found = check_text(text, "k.ptx", from_object(given), Settings(), Options())
    assert (found.verdict, found.filled_once) == ("proved", names)
