"""Bulk copies that every lane issues: a warp's are recorded as one operation, and followed by one agent."""

from __future__ import annotations

import pytest

from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ptx import check
from mcheck.simt.trace_extraction import extract_traces

GIVEN = {"grid": 1, "block": 64, "params": {"src": {"buffer": 1024}}}
BYTES = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 16;"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3], 16, [full];"
WAIT = """WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
  @!%p2 bra WAIT;"""
KERNEL = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry rows(.param .u64 src)
{{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .pred %p<4>;
  .shared .align 16 .b8 buf[1024];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [src];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd3, %rd1, %rd2;
  shl.b32 %r2, %r1, 4;
  mov.u32 %r3, buf;
  add.u32 %r3, %r3, %r2;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full], 64;
READY:
  bar.sync 0;
  {BYTES}
  {COPY}
  mbarrier.arrive.shared::cta.b64 %rd4, [full];
  {WAIT}
  xor.b32 %r4, %r3, 512;
  ld.shared.u32 %r5, [%r4];
  ret;
}}
"""


def test_a_warp_issues_its_copies_together() -> None:
    read = parse_module(KERNEL, "rows.ptx")
    program = next(extract_traces(read, build_launch(read, from_object(GIVEN)))).program
    assert len({id(op) for op in program.operations if isinstance(op, ops.BulkCopy)}) == 2
    assert sorted(map(len, partition_lanes(program))) == [1, 31, 32]  # one initialises


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("", "", set()),
        (WAIT, "", {"RACE003", "UB504"}),
        (BYTES, "", {"UB216", "DEAD003", "RACE003", "UB504"}),
        ("shl.b32 %r2, %r1, 4;", "and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 4;", {"RACE003"}),  # to places of two lanes
        ("shl.b32 %r2, %r1, 4;", "shl.b32 %r2, %r1, 3;", {"UB102"}),
    ],
)
def test_what_is_wrong_is_found(old: str, new: str, codes: set[str]) -> None:
    found = check(KERNEL.replace(old, new, 1) if old else KERNEL, GIVEN)
    assert {f.code for f in found.findings} == codes
    assert found.verdict == ("finding" if codes else "proved")
