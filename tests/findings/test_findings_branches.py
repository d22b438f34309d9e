"""A barrier that orders a statement in a branch stands outside of that: all threads of the CTA have to come to it."""

from __future__ import annotations

import pytest

from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx.launch_reader import from_object

RING = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in) {
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2; setp.lt.u32 %p1, %r1, WRITERS;
  cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd1, %rd2; xor.b32 %r5, %r2, 496; and.b32 %r5, %r5, 496; add.u32 %r5, %r3, %r5;
  @!%p1 bra SECOND;
  cp.async.ca.shared.global [%r4], [%rd2], 16;
SECOND:
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  ld.shared.u32 %r6, [%r5];
  BAR
  @!%p1 bra END;
  cp.async.ca.shared.global [%r4], [%rd2], 16;
END:
  cp.async.commit_group;
  cp.async.wait_group 0;
  ret;
}
"""


def check(writers: int, bar: str = "") -> Result:
    launch = {"entry": "k", "grid": 1, "block": 64, "params": {"in": {"buffer": 1024}}}
    text = RING.replace("WRITERS", str(writers)).replace("BAR", bar)
    return check_text(text, "k.ptx", from_object(launch), Settings(), Options())


@pytest.mark.daily
def test_a_barrier_stands_where_all_threads_come_by() -> None:
    """What a trial names is reached by all; where none is found, the fix says so of the statement that it names."""
    (found,) = check(32).findings
    assert found.missing == "Execute bar.sync 0 after line 16, in every thread of the CTA."
    assert check(32, "bar.sync 0;").verdict == "proved"
    (late,) = check(32, "@%p1 bar.sync 0;").findings
    assert "; a barrier has to stand outside of the branch around line 19, where all threads come by." in late.missing
