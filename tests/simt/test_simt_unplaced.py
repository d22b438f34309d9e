"""Copies whose other end in global memory depends on data: the ends in shared memory are followed all the same."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.ptx import check

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 table, .param .u64 index, .param .align 64 .b8 map[128])
.reqntid 64, 1, 1
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<10>;
	.shared .align 128 .b8 tile[1024];
	.shared .align 8 .b64 bar;
	ld.param.u64 	%rd1, [table];
	ld.param.u64 	%rd2, [index];
	mov.b64 	%rd6, map;
	cvta.param.u64 	%rd3, %rd6;
	mov.u32 	%r1, %tid.x;
	shl.b32 	%r2, %r1, 4;
	mov.u32 	%r3, tile;
	add.s32 	%r4, %r3, %r2;
	mov.u32 	%r5, bar;
	ld.global.u32 	%r6, [%rd2];
	ld.global.u32 	%r7, [%rd2+4];
	mul.wide.u32 	%rd4, %r6, 512;
	add.s64 	%rd5, %rd1, %rd4;
	setp.ne.u32 	%p1, %r1, 0;
"""
TAIL = """$END:
	ret;
}
"""
LAUNCH = {
    "grid": 1,
    "params": {
        "table": {"buffer": 1 << 20},
        "index": {"buffer": 64},
        "map": {
            "tensormap": {
                "global_address": {"buffer": 1 << 16}, "elemtype": "f16", "rank": 2, "global_dim": [64, 512],
                "global_stride": [128], "box_dim": [64, 1], "element_stride": [1, 1], "swizzle_mode": "none",
            }
        },
    },
}  # fmt: skip
INIT = """	@%p1 bra 	$READY;
	mbarrier.init.shared::cta.b64 	[%r5], 1;
$READY:
	bar.sync 	0;
"""
WAIT = """$AGAIN:
	mbarrier.try_wait.parity.shared::cta.b64 	%p2, [%r5], 0;
	@!%p2 bra 	$AGAIN;
"""
READ = "	xor.b32 	%r8, %r4, 16;\n	ld.shared.u32 	%r9, [%r8];\n"
STORE = "	st.shared.u32 	[%r4], %r1;\n"


def asked(body: str) -> Answer:
    return check(HEAD + body + TAIL, LAUNCH)


@pytest.mark.parametrize("size", ["", ", %r7"])
@pytest.mark.parametrize(("waited", "verdict"), [("cp.async.wait_group 0;", "bounded"), ("", "finding")])
def test_rows_gathered_by_cp_async(size: str, waited: str, verdict: str) -> None:
    """The row is unknown, and how much of it: the destination is written whole in any case."""
    body = f"""	cp.async.ca.shared.global 	[%r4], [%rd5], 16{size};
	cp.async.commit_group;
	{waited}
	bar.sync 	0;
"""
    found = asked(body + READ)
    assert found.verdict == verdict
    assert "depends on data" in (found.reason or "") or verdict == "finding"


@pytest.mark.parametrize(("wait", "verdict"), [(WAIT, "bounded"), ("", "finding")])
def test_rows_gathered_by_bulk_copies(wait: str, verdict: str) -> None:
    copy = """	@%p1 bra 	$GO;
	mbarrier.arrive.expect_tx.shared::cta.b64 	_, [%r5], 1024;
	cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes 	[%r3], [%rd5], 1024, [%r5];
$GO:
"""
    assert asked(INIT + copy + wait + READ).verdict == verdict


@pytest.mark.daily
@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.parametrize(("fence", "verdict"), [("fence.proxy.async.shared::cta;", "bounded"), ("", "finding")])
def test_rows_scattered_by_bulk_copies(reduce: bool, fence: str, verdict: str) -> None:
    """Two rows that nobody knows are not one row; what is read from shared memory is."""
    copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32" if reduce else (
        "cp.async.bulk.global.shared::cta.bulk_group")  # fmt: skip
    body = f"""{STORE}	{fence}
	bar.sync 	0;
	@%p1 bra 	$END;
	{copy} 	[%rd5], [%r3], 512;
	{copy} 	[%rd5+8192], [%r3+512], 512;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 	0;
"""
    assert asked(body).verdict == verdict


@pytest.mark.parametrize(("wait", "verdict"), [("", "finding"), (WAIT, "bounded")])
def test_a_row_gathered_is_none_that_is_scattered(wait: str, verdict: str) -> None:
    """Where one row comes from and where another goes is unknown, and not the same place."""
    body = f"""	@%p1 bra 	$END;
	mbarrier.init.shared::cta.b64 	[%r5], 1;
	mbarrier.arrive.expect_tx.shared::cta.b64 	_, [%r5], 512;
	cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes 	[%r3], [%rd5], 512, [%r5];
	cp.async.bulk.global.shared::cta.bulk_group 	[%rd5+8192], [%r3+512], 512;
{wait}	cp.async.bulk.global.shared::cta.bulk_group 	[%rd5+16384], [%r3], 512;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 	0;
"""
    assert asked(body).verdict == verdict


ROWS = "{%r10, %r6, %r7, %r6, %r7}"
SCATTER = "cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group"


@pytest.mark.parametrize(("wait", "verdict"), [("cp.async.bulk.wait_group.read 	0;", "bounded"), ("", "finding")])
def test_rows_scattered_by_a_tensor_map(wait: str, verdict: str) -> None:
    """Two times four rows that nobody knows are not the same ones; the bytes that they are read from are known."""
    body = f"""{STORE}	fence.proxy.async.shared::cta;
	bar.sync 	0;
	mov.b32 	%r10, 0;
	@%p1 bra 	$OVER;
	{SCATTER} 	[%rd3, {ROWS}], [%r3];
	{SCATTER} 	[%rd3, {ROWS}], [%r3+512];
	cp.async.bulk.commit_group;
	{wait}
$OVER:
	bar.sync 	0;
{STORE}"""
    found = asked(body)
    assert found.verdict == verdict
    assert {f.code for f in found.findings if f.severity == "error"} <= {"RACE003"}


@pytest.mark.parametrize(("bytes_", "verdict"), [(512, "bounded"), (528, "finding")])
def test_rows_gathered_by_a_tensor_map(bytes_: int, verdict: str) -> None:
    copy = f"""	mov.b32 	%r10, 0;
	@%p1 bra 	$GO;
	mbarrier.arrive.expect_tx.shared::cta.b64 	_, [%r5], {bytes_};
	cp.async.bulk.tensor.2d.tile::gather4.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd3, {ROWS}], [%r5];
$GO:
"""
    found = asked(INIT + copy + WAIT + "	bar.sync 	0;\n" + STORE)
    assert found.verdict == verdict
