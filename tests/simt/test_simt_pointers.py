"""Pointers into one buffer, pointers in memory, tensor maps behind a pointer: the addresses are those of the host."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"

TWO = (
    HEAD
    + """
.visible .entry two(.param .u64 p, .param .u64 q)
.reqntid 64, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<6>;
	ld.param.u64 	%rd1, [p];
	ld.param.u64 	%rd2, [q];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 4;
	add.u64 	%rd4, %rd1, %rd3;
	st.global.u32 	[%rd4], %r1;
	add.u64 	%rd5, %rd2, %rd3;
	ld.global.u32 	%r2, [%rd5];
	ret;
}
"""
)
"""Thread t writes word t behind p and reads word t behind q."""


@pytest.mark.parametrize(("offset", "verdict"), [(0, "proved"), (4, "finding"), (252, "finding"), (256, "proved")])
def test_two_pointers_into_one_buffer_overlap_as_their_offsets_say(offset: int, verdict: str) -> None:
    launch = {
        "launches": [{"grid": 1, "params": {"p": {"buffer": "x"}, "q": {"buffer": "x", "offset": offset}}}],
        "buffers": {"x": {"bytes": 1024}},
    }
    found = check(TWO, launch)
    assert found.verdict == verdict, found.reason
    assert {f.code for f in found.findings} == ({"RACE001"} if verdict == "finding" else set())


THROUGH = (
    HEAD
    + """
.visible .entry through(.param .u64 table, .param .u64 out)
.reqntid 64, 1, 1
{
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<8>;
	ld.param.u64 	%rd1, [table];
	ld.param.u64 	%rd2, [out];
	ld.global.u64 	%rd3, [%rd1+8];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd4, %r1, 4;
	add.u64 	%rd5, %rd3, %rd4;
	st.global.u32 	[%rd5], %r1;
	xor.b32 	%r2, %r1, 1;
	mul.wide.u32 	%rd6, %r2, 4;
	add.u64 	%rd7, %rd2, %rd6;
	ld.global.u32 	%r3, [%rd7];
	ret;
}
"""
)
"""Thread t writes word t behind the second pointer of a table and reads another word behind out."""


@pytest.mark.parametrize(("second", "verdict"), [("x", "finding"), ("y", "proved")])
def test_a_pointer_in_memory_leads_to_its_buffer(second: str, verdict: str) -> None:
    table = {"bytes": 16, "init": {"hex": "00" * 16, "at": {"0": {"buffer": "y"}, "8": {"buffer": second}}}}
    launch = {
        "launches": [{"grid": 1, "params": {"table": {"buffer": "table"}, "out": {"buffer": "x"}}}],
        "buffers": {"table": table, "x": {"bytes": 256}, "y": {"bytes": 256}},
    }
    found = check(THROUGH, launch)
    assert found.verdict == verdict, found.reason
    if verdict == "finding":
        assert found.findings[0].accesses[0].object == "x"


def test_a_pointer_in_the_memory_of_a_parameter_alone() -> None:
    table = {"buffer": 16, "init": {"hex": "00" * 16, "at": {"8": {"buffer": 256}}}}
    assert check(THROUGH, {"grid": 1, "params": {"table": table, "out": {"buffer": 256}}}).verdict == "proved"
    small = {"buffer": 16, "init": {"hex": "00" * 16, "at": {"8": {"buffer": 128}}}}
    found = check(THROUGH, {"grid": 1, "params": {"table": small, "out": {"buffer": 256}}})
    assert [f.code for f in found.findings] == ["UB103"]


def test_a_pointer_that_an_earlier_launch_may_have_overwritten_is_not_known() -> None:
    """The first launch writes through the table's own pointer to the table, from its second word on."""
    table = {"bytes": 16, "init": {"hex": "00" * 16, "at": {"8": {"buffer": "x"}}}}
    one = {"grid": 1, "params": {"table": {"buffer": "table"}, "out": {"buffer": "y"}}}
    buffers = {"table": table, "x": {"bytes": 256}, "y": {"bytes": 256}}
    assert check(THROUGH, {"launches": [one, one], "buffers": buffers}).verdict == "proved"
    writes = {"bytes": 256, "init": {"hex": "00" * 16, "at": {"8": {"buffer": "x"}}}}
    over = {"entry": "two", "grid": 1, "params": {"p": {"buffer": "table"}, "q": {"buffer": "y"}}}
    both = TWO + THROUGH.removeprefix(HEAD)
    later = {**one, "entry": "through"}
    found = check(both, {"launches": [over, later], "buffers": {**buffers, "table": writes}})
    assert found.verdict in ("unknown", "bounded")


MAPS = (
    HEAD
    + """
.visible .entry maps(.param .u64 table)
.reqntid 32, 1, 1
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<6>;
	.shared .align 128 .b8 	tile[1024];
	.shared .align 8 .b64 	full;
	ld.param.u64 	%rd1, [table];
	add.u64 	%rd2, %rd1, 128;
	mov.u32 	%r1, tile;
	mov.u32 	%r2, full;
	mov.u32 	%r3, %tid.x;
	setp.ne.u32 	%p1, %r3, 0;
	@%p1 bra 	$L_done;
	mbarrier.init.shared::cta.b64 	[%r2], 1;
	fence.proxy.async.shared::cta;
	mbarrier.arrive.expect_tx.shared::cta.b64 	_, [%r2], EXPECTED;
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes 	[%r1], [%rd2, {%r3, %r3}], [%r2];
$L_wait:
	mbarrier.try_wait.parity.shared::cta.b64 	%p2, [%r2], 0;
	@!%p2 bra 	$L_wait;
$L_done:
	ret;
}
"""
)


def a_map(rows: int) -> dict[str, object]:
    """A map whose boxes have so many rows of 32 bytes."""
    return {"tensormap": {
        "global_address": {"buffer": 4096}, "elemtype": "f32", "rank": 2, "global_dim": [8, 128], "global_stride": [32],
        "box_dim": [8, rows], "element_stride": [1, 1], "swizzle_mode": "none",
    }}  # fmt: skip


@pytest.mark.parametrize(("expected", "verdict"), [(512, "proved"), (256, "finding")])
def test_the_second_of_two_maps_behind_a_pointer(expected: int, verdict: str) -> None:
    two = [a_map(8)["tensormap"], a_map(16)["tensormap"]]
    found = check(MAPS.replace("EXPECTED", str(expected)), {"grid": 1, "params": {"table": {"tensormaps": two}}})
    assert found.verdict == verdict, found.reason


FAR = (
    HEAD
    + """
.visible .entry far(.param .u64 p)
.reqntid 1, 1, 1
{
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<4>;
	ld.param.u64 	%rd1, [p];
	mov.u32 	%r1, %ctaid.x;
	mul.lo.s32 	%r2, %r1, 0x20000000;
	mul.wide.s32 	%rd2, %r2, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ACCESS;
	ret;
}
"""
)


@pytest.mark.parametrize("access", ["ld.global.u32 %r3, [%rd3]", "st.u32 [%rd3], %r1", "red.global.add.u32 [%rd3], 1"])
def test_an_index_that_turns_negative_leaves_the_buffer(access: str) -> None:
    """That of CTA 4 does, whose address is below all memory, so that it is above all as a number of 64 bits."""
    for grid, codes in ((4, []), (5, ["UB103"])):
        found = check(FAR.replace("ACCESS", access), {"grid": grid, "params": [{"buffer": 1 << 33}]})
        assert [f.code for f in found.findings] == codes
