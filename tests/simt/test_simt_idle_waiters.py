"""Lanes and warps that wait beside the one that works: where they may be left out, and where not."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

RING = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry ring(.param .u64 .ptr .global .align 16 source, .param .u64 .ptr .global .align 16 target)
{
	.reg .pred %p<5>;
	.reg .b32 %r<12>;
	.reg .b64 %rd<6>;
	.shared .align 128 .b8 tile[128];
	.shared .align 8 .b64 full;
	.shared .align 8 .b64 empty;
	ld.param.u64 %rd1, [source];
	ld.param.u64 %rd2, [target];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	mov.u32 %r3, full;
	mov.u32 %r4, empty;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra BEGUN;
	mbarrier.init.shared::cta.b64 [%r3], 1;
	mbarrier.init.shared::cta.b64 [%r4], 32;
	fence.mbarrier_init.release.cluster;
BEGUN:
	bar.sync 0;
	mov.u32 %r5, 0;
	setp.lt.u32 %p2, %r1, PRODUCERS;
	@!%p2 bra CONSUME;
PRODUCE:
	xor.b32 %r6, %r5, 1;
	and.b32 %r6, %r6, 1;
FREE:
	mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], %r6;
	@!%p3 bra FREE;
	@%p1 bra NEXT;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 128, [%r3];
NEXT:
	// each
	add.u32 %r5, %r5, 1;
	setp.lt.u32 %p4, %r5, 4;
	@%p4 bra PRODUCE;
	// end
	ret;
CONSUME:
	and.b32 %r6, %r5, 1;
HERE:
	mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r6;
	@!%p3 bra HERE;
	and.b32 %r7, %r1, 31;
	mad.lo.u32 %r8, %r7, 4, %r2;
	ld.shared.u32 %r9, [%r8];
	fence.proxy.async.shared::cta;
	mbarrier.arrive.shared::cta.b64 _, [%r4];
	add.u32 %r5, %r5, 1;
	setp.lt.u32 %p4, %r5, 4;
	@%p4 bra CONSUME;
	ret;
}
"""


def answered(block: int, producers: int, each: str = "", end: str = "", old: str = "", new: str = ""):  # type: ignore[no-untyped-def]
    """The answer about the ring, with its first threads as producers."""
    text = RING.replace("PRODUCERS", str(producers)).replace("// each", each).replace("// end", end)
    assert old in text
    launch = {"grid": [1], "block": [block], "params": {"0": {"buffer": 128}, "1": {"buffer": 128}}}
    return check(text.replace(old, new, 1) if old else text, launch)


@pytest.mark.parametrize(
    ("block", "producers", "each"),
    [
        (64, 32, ""),
        (64, 32, "bar.warp.sync -1;"),
        (64, 32, "fence.proxy.async.shared::cta;"),
        (128, 96, ""),
        (128, 96, "bar.warp.sync -1;"),
        (128, 96, "fence.proxy.async;"),
    ],
    ids=["lanes", "lanes in step", "lanes with fences", "warps", "warps in step", "warps with fences"],
)
def test_who_only_waits_is_taken_to_keep_up(block: int, producers: int, each: str) -> None:
    found = answered(block, producers, each)
    assert found.verdict == "proved"
    said = [text for text in found.assumptions if text.startswith("threads that only wait")]
    assert len(said) == 1
    assert "at line 32," in said[0]


@pytest.mark.daily
@pytest.mark.parametrize(("block", "producers"), [(64, 32), (96, 64), (128, 96)])
@pytest.mark.parametrize("end", ["", "bar.sync 13, {};", "bar.sync 13, {};\n\tld.shared.u32 %r9, [%r2];"])
def test_so_they_are_where_they_meet_again(block: int, producers: int, end: str) -> None:
    """A barrier behind the loop makes no difference, whatever comes then."""
    found = answered(block, producers, end=end.format(producers))
    assert found.verdict == ("finding" if "ld" in end else "proved")
    assert not any(f.kind == "deadlock" for f in found.findings)
    assert any(text.startswith("threads that only wait") for text in found.assumptions)


def test_a_barrier_that_does_not_wait_for_the_other_warp_is_no_meeting() -> None:
    """Each warp passes it alone, and the one that only waits may sleep before it."""
    found = answered(96, 64, end="bar.sync 13, 32;")
    assert "DEAD003" in {f.code for f in found.findings}


def test_of_who_cannot_fall_behind_nothing_is_assumed() -> None:
    """The lanes meet between the wait and what it is for."""
    found = answered(64, 32, old="@%p1 bra NEXT;", new="bar.warp.sync -1;\n@%p1 bra NEXT;")
    assert found.verdict == "proved"
    assert not any(text.startswith("threads that only wait") for text in found.assumptions)


@pytest.mark.daily
@pytest.mark.parametrize(
    "changes",
    [
        {"each": "@%p1 ld.shared.u32 %r9, [%r2];"},  # reads what it has waited for
        {"end": "@!%p1 mbarrier.inval.shared::cta.b64 [%r4];"},  # while they may still wait for it
        {
            "old": "FREE:\n",
            "new": "@%p1 xor.b32 %r6, %r6, 1;\nFREE:\n",
        },  # for the other parity than the lane that works
    ],
    ids=["reads", "ends", "another phase"],
)
def test_who_does_more_or_waits_for_more_is_followed(changes: dict[str, str]) -> None:
    assert answered(64, 32, **changes).verdict == "finding"


def test_who_waits_in_vain_beside_others_that_do_is_no_bystander() -> None:
    """A fence is nothing that others do with what they have waited for."""
    text = (
        RING[: RING.index("\tsetp.lt.u32 %p2")]
        + """
IDLE:
	mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;
	@!%p3 bra IDLE;
	fence.proxy.async.shared::cta;
	ret;
}
"""
    )
    buffers = {"0": {"buffer": 128}, "1": {"buffer": 128}}
    found = check(text, {"grid": [1], "block": [64], "params": buffers})
    assert [f.kind for f in found.findings] == ["deadlock"]
