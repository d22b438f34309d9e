"""Which bytes a lane accesses, where one record stands for the accesses of several lanes."""

from __future__ import annotations

import pytest

from mcheck.engines.protocol.state.access_history import LaneOwners, Lanes, lane_bytes
from mcheck.ptx import check

SCATTERED = LaneOwners(starts=(0, 64, 128), size=16, lanes=(2, 0, 1))


@pytest.mark.parametrize(
    ("lanes", "byte", "found"),
    [
        ((256, 16), 256, (256, 272)),
        ((256, 16), 300, (288, 304)),
        (SCATTERED, 70, (64, 80)),
        (SCATTERED, 128, (128, 144)),
        (3, 70, None),
        (None, 70, None),
    ],
)
def test_a_lane_has_its_own_bytes(lanes: Lanes, byte: int, found: tuple[int, int] | None) -> None:
    assert lane_bytes(lanes, byte) == found


CLAMPED = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 src)
.reqntid 32, 1, 1
{
	.reg .b32 %r<8>;
	.reg .f32 %f<2>;
	.reg .b64 %rd<3>;
	.shared .align 128 .b8 tile[512];
	ld.param.u64 %rd1, [src];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	max.s32 %r3, %r1, 1;
	sub.s32 %r3, %r3, 1;
	mad.lo.s32 %r4, %r3, 16, %r2;
	ld.shared.f32 %f1, [%r4];
	mad.lo.s32 %r5, %r1, 16, %r2;
	mul.wide.u32 %rd2, %r1, 16;
	add.s64 %rd2, %rd1, %rd2;
	cp.async.cg.shared.global [%r5], [%rd2], 16;
	cp.async.wait_all;
	ret;
}
"""
"""Each lane reads what its left neighbour copies to, and lane 0 reads its own bytes, which lane 1 reads too."""


def test_of_several_lanes_one_that_races_is_named() -> None:
    (found,) = check(CLAMPED, {"grid": [1], "params": {"src": {"buffer": 512}}}).findings
    read, write = found.accesses
    assert (read.access, write.access) == ("read", "write")
    assert (read.thread, write.thread, read.bytes[0]) == ("warp0[1]", "warp0[0]", 0)
