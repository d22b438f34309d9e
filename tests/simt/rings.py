"""A ring of bulk copies in PTX whose rounds are a parameter: one lane fills the stages, a warp reads them."""

from __future__ import annotations

from typing import Any

LAUNCH: dict[str, Any] = {"grid": 4, "block": 64, "params": {"source": {"buffer": None}, "rounds": "any"}}


SLOT = """\
	shl.b32 %r14, %r12, 3;
	mov.u32 %r15, full;
	add.s32 %r15, %r15, %r14;
	mov.u32 %r16, empty;
	add.s32 %r16, %r16, %r14;
	shl.b32 %r17, %r12, 8;
	mov.u32 %r18, tile;
	add.s32 %r18, %r18, %r17;"""
"""%r15 and %r16 are the mbarriers of the stage, %r18 its tile."""


def ring(
    stages: int = 2,
    *,
    parity: str = "div.u32 %r11, %r10, {stages}; and.b32 %r11, %r11, 1;",
    stage: str = "rem.u32 %r12, %r10, {stages};",
    produces: str = "",
    consumes: str = "",
    fence: str = "fence.proxy.async.shared::cta;",
    address: str = "mul.wide.u32 %rd3, %r10, 256; add.s64 %rd2, %rd1, %rd3;",
    last: str = "add.s32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, %r1;",
) -> str:
    """%r10 is the round, %r11 the parity of its phase, %r12 its stage, %rd2 where the data comes from; ``produces`` and
    ``consumes`` are further instructions of a round, before its wait.
    """
    inits = "\n".join(
        f"\tmbarrier.init.shared::cta.b64 [full+{8 * s}], 1;\n\tmbarrier.init.shared::cta.b64 [empty+{8 * s}], 32;"
        for s in range(stages)
    )
    indices = (stage + " " + parity).format(stages=stages)
    return f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry ring(.param .u64 source, .param .u32 rounds)
.reqntid 64, 1, 1
{{
	.reg .pred %p<8>;
	.reg .b16 %h<8>;
	.reg .b32 %r<32>;
	.reg .b64 %rd<8>;
	.shared .align 128 .b8 tile[{256 * stages}];
	.shared .align 8 .b64 full[{stages}];
	.shared .align 8 .b64 empty[{stages}];

	ld.param.u64 %rd1, [source];
	ld.param.u32 %r1, [rounds];
	mov.u32 %r2, %tid.x;
	setp.ne.u32 %p1, %r2, 0;
	mov.u32 %r10, 0;
	@%p1 bra $ready;
{inits}
$ready:
	bar.sync 0;
	setp.lt.s32 %p3, %r1, 1;
	@%p3 bra $end;
	setp.gt.u32 %p4, %r2, 31;
	@%p4 bra $consume;
	@%p1 bra $end;
$produce:
	{indices}
	xor.b32 %r13, %r11, 1;
{SLOT}
	{produces}
$refill:
	mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r16], %r13;
	@!%p5 bra $refill;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 256;
	{address}
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r18], [%rd2], 256, [%r15];
	{last}
	@%p2 bra $produce;
	bra $end;
$consume:
	{indices}
{SLOT}
	{consumes}
$filled:
	mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r15], %r11;
	@!%p5 bra $filled;
	and.b32 %r19, %r2, 31;
	shl.b32 %r19, %r19, 3;
	add.s32 %r19, %r18, %r19;
	ld.shared.u64 %rd5, [%r19];
	{fence}
	mbarrier.arrive.shared::cta.b64 _, [%r16];
	{last}
	@%p2 bra $consume;
$end:
	ret;
}}
"""
