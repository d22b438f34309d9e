"""A dropped barrier behind a wait is named there; a dropped or weak wait is named where the barrier is."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.frontend.ptx.launch_reader import from_object

STAGES = """PTX stages
{{ .global .align 16 .u32 src[64]; .shared .align 16 .u32 buf[3][8]; }}
P@cta 0, warp 0..2, lane 0 {{
  for s in 0..2 {{
    cp.async.cg.shared.global [buf[s] + 16*%warpid], [src + 32*s], 16;
    cp.async.commit_group;
  }}
{first}
  for k in 2..6 {{
    cp.async.cg.shared.global [buf[k%3] + 16*%warpid], [src + 32*k], 16;
    cp.async.commit_group;
    ld.shared.u32 r0, [buf[(k+1)%3] + 16 - 16*%warpid];
{second}
  }}
  cp.async.wait_group 0;
}}
"""
WAIT, BAR, WEAK = "cp.async.wait_group 1;", "bar.sync 0;", "cp.async.wait_group 2;"


def in_lines(*statements: str) -> str:
    return "\n".join([*statements, *[""] * (2 - len(statements))])


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ((WAIT,), (WAIT, BAR), "Put a barrier between the wait at line 8 and line 13"),
        ((WAIT, BAR), (WAIT,), "Put a barrier between the wait at line 14 and line 13"),
        ((BAR,), (WAIT, BAR), "Execute cp.async.wait_group 1 before line 8, which hands the bytes over"),
        ((WAIT, BAR), (BAR,), "Execute cp.async.wait_group 1 before line 14, which hands the bytes over"),
        ((WEAK, BAR), (WAIT, BAR), "Execute cp.async.wait_group 1 instead of 2 at line 8"),
        ((WAIT, BAR), (WEAK, BAR), "Execute cp.async.wait_group 1 instead of 2 at line 14"),
    ],
)
def test_what_is_missing_is_named_where_it_was_dropped(
    first: tuple[str, ...], second: tuple[str, ...], says: str
) -> None:
    found = check_case(
        Case("stages.litmus", text=STAGES.format(first=in_lines(*first), second=in_lines(*second))),
        Settings(),
        Options(),
    ).findings
    early = [f for f in found if f.accesses[-1].access == "read" or f.accesses[1].line == 5]
    assert early
    assert all(f.missing.startswith(says) for f in early), [f.missing for f in early]


MATRICES = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in) {
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[2048];
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;
  cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd1, %rd2; xor.b32 %r5, %r1, 32; shl.b32 %r5, %r5, 4; add.u32 %r5, %r3, %r5;
  cp.async.cg.shared.global [%r4], [%rd2], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  cp.async.cg.shared.global [%r4+1024], [%rd2+1024], 16;
  cp.async.commit_group;
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r7}, [%r5];
  cp.async.wait_group 0;
  BAR
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r5+1024];
  ret;
}
"""


@pytest.mark.parametrize("bar", ["", "bar.sync 0;"])
def test_a_matrix_is_read_by_all_lanes_of_a_warp(bar: str) -> None:
    """Half of the lanes give no address: what these copied lacks the same barrier, which stands in no branch."""
    launch = {"entry": "k", "grid": 1, "block": 64, "params": {"in": {"buffer": 2048}}}
    found = check_text(MATRICES.replace("BAR", bar), "k.ptx", from_object(launch), Settings(), Options()).findings
    assert bool(found) is (not bar)
    for one in found:
        assert one.missing.startswith("Put a barrier between the wait at line 17 and line 19, or a release"), (
            one.missing
        )
        assert "branch" not in one.missing
