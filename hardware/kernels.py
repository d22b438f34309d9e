"""Small kernels as PTX modules, each of which leaves something in shared memory and then copies that out.

Every kernel has CTAs of 64 threads, 1024 bytes of shared memory that begin as a pattern, and four parameters: ``a``
with random bytes, ``b`` with others, ``out`` for what is left in shared memory, and a tensor map on ``a`` or ``b``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardware.data import make

THREADS = 64
SHARED = 1024
"""Bytes of each CTA that are copied out, and of ``a`` and ``b``."""

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry run(
	.param .u64 .ptr .global .align 16 a,
	.param .u64 .ptr .global .align 16 b,
	.param .u64 .ptr .global .align 16 out,
	.param .align 64 .b8 tm[128]
)
.reqntid 64, 1, 1
{
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .b32 %r<32>;
	.reg .b64 %rd<16>;
	.shared .align 1024 .b8 tile[1024];
	.shared .align 8 .b64 bar;
	.shared .align 8 .b64 every;
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u64 %rd3, [out];
	mov.b64 %rd9, tm;
	cvta.param.u64 %rd4, %rd9;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	mov.u32 %r3, bar;
	mov.u32 %r4, every;
	mov.u32 %r30, %cluster_ctarank;
	setp.ne.u32 %p1, %r1, 0;
	mad.lo.u32 %r5, %r1, 16, %r2;
	mul.lo.u32 %r6, %r1, 0x01010101;
	st.shared.u32 [%r5], %r6;
	st.shared.u32 [%r5+4], %r1;
	xor.b32 %r7, %r6, 0x0F1E2D3C;
	st.shared.u32 [%r5+8], %r7;
	st.shared.u32 [%r5+12], 0xA5A5A5A5;
	mul.wide.u32 %rd5, %r1, 16;
	add.u64 %rd6, %rd1, %rd5;
	@!%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
	@!%p1 mbarrier.init.shared::cta.b64 [%r4], 64;
	fence.mbarrier_init.release.cluster;
	fence.proxy.async;
"""
ALONE = "\tbar.sync 0;\n"
TOGETHER = "\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n"
TAIL = """	mul.wide.u32 %rd10, %r30, 1024;
	add.u64 %rd11, %rd3, %rd10;
	add.u64 %rd12, %rd11, %rd5;
	ld.shared.u32 %r20, [%r5];
	st.global.u32 [%rd12], %r20;
	ld.shared.u32 %r21, [%r5+4];
	st.global.u32 [%rd12+4], %r21;
	ld.shared.u32 %r22, [%r5+8];
	st.global.u32 [%rd12+8], %r22;
	ld.shared.u32 %r23, [%r5+12];
	st.global.u32 [%rd12+12], %r23;
	ret;
}
"""
FULL = """
{0}:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [{1}], {2};
	@!%p2 bra {0};
"""
REDUCTIONS = ("add.u32", "max.s32", "min.u32", "xor.b32", "and.b32", "add.u64")
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
PEER = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
ADDED = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"
EXPECT = "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {0};\n"
GROUP = "\t@!%p1 cp.async.bulk.commit_group;\n\t@!%p1 cp.async.bulk.wait_group 0;\n"


def _wait(label: str = "HERE", where: str = "%r3", parity: int = 0) -> str:
    return FULL.format(label, where, parity)


def _tensor(mode: str) -> str:
    opcode = f"cp.async.bulk.tensor.2d.shared::cluster.global.{mode}mbarrier::complete_tx::bytes"
    return EXPECT.format(1024) + f"	@!%p1 {opcode} [%r2], [%rd4, {{0, 0}}], [%r3];" + _wait()


@dataclass(frozen=True, slots=True)
class Kernel:
    """``swizzle`` is that of the tensor map, whose box is 1024 bytes of ``on``, in rows of the swizzle's span."""

    name: str
    body: str
    ctas: int = 1
    swizzle: str = "none"
    on: str = "a"
    touched: bool = False
    """Whether only the place of the bytes that change is foretold, and not their values."""

    @property
    def text(self) -> str:
        """The module."""
        head = HEAD
        if self.ctas > 1:
            head = head.replace(".reqntid", f".reqnctapercluster {self.ctas}, 1, 1\n.explicitcluster\n.reqntid", 1)
        meet = TOGETHER if self.ctas > 1 else ALONE
        return head + meet + self.body.strip("\n") + "\n\tfence.proxy.async;\n" + meet + TAIL

    @property
    def launch(self) -> dict[str, Any]:
        """In the form of a launch file."""
        span = 128 if self.swizzle == "none" else int(self.swizzle[:-1])
        tensor = {
            "global_address": {"buffer": SHARED}, "elemtype": "u32", "rank": 2,
            "global_dim": [span // 4, SHARED // span],
            "global_stride": [span], "box_dim": [span // 4, SHARED // span], "element_stride": [1, 1],
            "interleave_layout": "none", "swizzle_mode": self.swizzle, "fill_mode": "zero",
        }  # fmt: skip
        params = {
            "a": {"buffer": SHARED}, "b": {"buffer": SHARED}, "out": {"buffer": SHARED * self.ctas},
            "tm": {"tensormap": tensor},
        }  # fmt: skip
        return {"grid": [self.ctas], "block": [THREADS], "cluster": [self.ctas], "params": params}

    def data(self) -> dict[str, bytes]:
        """What the buffers hold before."""
        inputs = {name: make("random", f"kernels/{self.name}/{name}", SHARED) for name in "ab"}
        return {**inputs, "out": bytes(SHARED * self.ctas)}


def _to_peer(name: str, opcode: str, source: str) -> Kernel:
    """Each CTA of a pair sends bytes to the other one."""
    body = f"""
	xor.b32 %r8, %r30, 1;
	mapa.shared::cluster.u32 %r9, %r2, %r8;
	mapa.shared::cluster.u32 %r10, %r3, %r8;
	@!%p1 {opcode} [%r9+512], {source}, 256, [%r10];
"""
    return Kernel(name, EXPECT.format(256) + TOGETHER + body + _wait(), ctas=2)


KERNELS = (
    Kernel(
        "swizzled stores",
        """
	shr.u32 %r8, %r1, 3;
	xor.b32 %r8, %r8, %r1;
	mad.lo.u32 %r8, %r8, 16, %r2;
	st.shared.v2.u32 [%r8], {%r6, %r1};
""",
    ),
    Kernel(
        "transposed",
        """
	mul.wide.u32 %rd7, %r1, 4;
	add.u64 %rd7, %rd7, %rd1;
	ld.global.u32 %r8, [%rd7];
	and.b32 %r9, %r1, 7;
	shr.u32 %r10, %r1, 3;
	mad.lo.u32 %r9, %r9, 8, %r10;
	mad.lo.u32 %r9, %r9, 4, %r2;
	st.shared.u32 [%r9], %r8;
""",
    ),
    Kernel(
        "bytes and halves",
        """
	cvt.u16.u32 %h1, %r1;
	add.u32 %r8, %r2, %r1;
	bar.sync 0;
	st.shared.u8 [%r8+512], %h1;
	add.u32 %r9, %r8, %r1;
	st.shared.u16 [%r9+640], %h1;
""",
    ),
    Kernel(
        "atomics",
        """
	and.b32 %r8, %r1, 3;
	mad.lo.u32 %r8, %r8, 4, %r2;
	red.shared.add.u32 [%r8], %r1;
	red.shared.max.u32 [%r8+16], %r6;
	red.shared.min.s32 [%r8+32], %r6;
	red.shared.xor.b32 [%r8+48], %r6;
	atom.shared.or.b32 %r9, [%r8+64], %r1;
	red.shared.inc.u32 [%r8+80], 9;
	atom.shared.add.u64 %rd7, [%r2+128], %rd5;
""",
    ),
    Kernel(
        "butterfly",
        """
	add.u32 %r8, %r1, 0;
	shfl.sync.bfly.b32 %r9, %r8, 16, 0x1f, 0xffffffff;
	add.u32 %r8, %r8, %r9;
	shfl.sync.bfly.b32 %r9, %r8, 8, 0x1f, 0xffffffff;
	add.u32 %r8, %r8, %r9;
	shfl.sync.up.b32 %r10, %r8, 1, 0, 0xffffffff;
	shfl.sync.idx.b32 %r11, %r6, 5, 0x181f, 0xffffffff;
	bar.sync 0;
	st.shared.v2.u32 [%r5], {%r8, %r10};
	st.shared.u32 [%r5+8], %r11;
""",
    ),
    Kernel(
        "votes",
        """
	and.b32 %r8, %r1, 5;
	setp.eq.u32 %p2, %r8, 4;
	vote.sync.ballot.b32 %r9, %p2, 0xffffffff;
	st.shared.u32 [%r5], %r9;
	match.any.sync.b32 %r10, %r8, 0xffffffff;
	st.shared.u32 [%r5+4], %r10;
	redux.sync.add.u32 %r11, %r1, 0xffffffff;
	st.shared.u32 [%r5+8], %r11;
""",
    ),
    Kernel(
        "cp.async of all sizes",
        """
	cp.async.ca.shared.global [%r5], [%rd6+4], 4;
	cp.async.ca.shared.global [%r5+8], [%rd6], 8;
	cp.async.wait_all;
""",
    ),
    Kernel(
        "cp.async of a part",
        """
	and.b32 %r8, %r1, 15;
	cp.async.cg.shared.global [%r5], [%rd6], 16, %r8;
	cp.async.commit_group;
	cp.async.wait_group 0;
""",
    ),
    Kernel(
        "two groups",
        """
	add.u64 %rd7, %rd2, %rd5;
	cp.async.cg.shared.global [%r5], [%rd6], 16;
	cp.async.commit_group;
	cp.async.wait_group 0;
	ld.shared.u32 %r8, [%r5+4];
	cp.async.cg.shared.global [%r5], [%rd7], 16;
	cp.async.commit_group;
	cp.async.wait_group 0;
	ld.shared.u32 %r9, [%r5+4];
	add.u32 %r8, %r8, %r9;
	st.shared.u32 [%r5+4], %r8;
""",
    ),
    Kernel(
        "cp.async to an mbarrier",
        """
	cp.async.ca.shared.global [%r5], [%rd6], 16;
	cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r4];
"""
        + _wait(where="%r4")
        + """
	xor.b32 %r8, %r5, 16;
	ld.shared.u32 %r9, [%r8];
	bar.sync 0;
	st.shared.u32 [%r5], %r9;
""",
    ),
    Kernel("bulk load", EXPECT.format(528) + f"	@!%p1 {BULK} [%r2+112], [%rd1+32], 528, [%r3];" + _wait()),
    Kernel(
        "rounds of bulk loads",
        """
	mov.u32 %r8, 0;
	mov.u32 %r9, 0;
	mov.u64 %rd7, %rd1;
ROUND:
	@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
"""
         f"	@!%p1 {BULK} [%r2], [%rd7], 256, [%r3];"
         """
	and.b32 %r10, %r8, 1;
"""
        + _wait(parity=10).replace(", 10;", ", %r10;")
        + """
	mad.lo.u32 %r11, %r1, 4, %r2;
	ld.shared.u32 %r12, [%r11];
	add.u32 %r9, %r9, %r12;
	fence.proxy.async;
	bar.sync 0;
	add.u64 %rd7, %rd7, 256;
	add.u32 %r8, %r8, 1;
	setp.lt.u32 %p3, %r8, 4;
	@%p3 bra ROUND;
	st.shared.u32 [%r11+512], %r9;
""",
    ),
    Kernel("bulk store", "	@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2+64], [%r2+16], 800;\n" + GROUP),
    Kernel(
        "bulk reductions",
        "".join(
            f"	@!%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{what} [%rd2+{at}], [%r2+{at}], 128;\n"
            for at, what in zip(range(0, 768, 128), REDUCTIONS, strict=True)
        )
        + GROUP,
    ),
    _to_peer("copy to the peer", PEER, "[%r2]"),
    _to_peer("sum into the peer", ADDED, "[%r2+256]"),
    Kernel(
        "multicast",
        EXPECT.format(512)
        + TOGETHER
        + """
	mad.lo.u32 %r8, %r30, 512, %r2;
	setp.ne.u32 %p3, %r30, 0;
"""
        + f"	@%p3 bra THERE;\n	@!%p1 {BULK}.multicast::cluster [%r2+256], [%rd1+16], 512, [%r3], 3;\nTHERE:\n"
        + _wait(),
        ctas=2,
    ),
    Kernel(
        "st.async",
        EXPECT.format(256)
        + TOGETHER
        + """
	xor.b32 %r8, %r30, 1;
	mad.lo.u32 %r9, %r1, 4, %r2;
	mapa.shared::cluster.u32 %r10, %r9, %r8;
	mapa.shared::cluster.u32 %r11, %r3, %r8;
	st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10+256], %r6, [%r11];
"""
        + _wait(),
        ctas=2,
    ),
    Kernel(
        "stores and atomics at the peer",
        """
	xor.b32 %r8, %r30, 1;
	mapa.shared::cluster.u32 %r9, %r5, %r8;
	add.u32 %r10, %r6, %r30;
	st.shared::cluster.u32 [%r9+8], %r10;
	mapa.shared::cluster.u32 %r11, %r2, %r8;
	red.shared::cluster.add.u32 [%r11+4], %r1;
""",
        ctas=2,
    ),
    *(Kernel(f"tensor load, {mode}", _tensor("tile."), swizzle=mode) for mode in ("none", "32B", "64B", "128B")),
    Kernel(
        "tensor load and back, 128B",
        _tensor("tile.")
        + """
	shr.u32 %r8, %r1, 3;
	xor.b32 %r9, %r1, %r8;
	and.b32 %r9, %r9, 7;
	mad.lo.u32 %r8, %r8, 8, %r9;
	mad.lo.u32 %r8, %r8, 16, %r2;
	ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [%r8];
	bar.sync 0;
	st.shared.v4.u32 [%r5], {%r9, %r10, %r11, %r12};
""",
        swizzle="128B",
    ),
    *(
        Kernel(
            f"tensor store, {mode}",
            "	@!%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {0, 0}], [%r2];\n" + GROUP,
            swizzle=mode, on="b",
        )
        for mode in ("64B", "128B")
    ),
    Kernel(
        "tensor sum, 128B",
        "	@!%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {0, 0}], [%r2];\n"
        + GROUP,
        swizzle="128B", on="b",
    ),
    *(
        Kernel(
            f"stmatrix {form}",
            f"""
	and.b32 %r8, %r1, 31;
	mad.lo.u32 %r8, %r8, 16, %r2;
	shr.u32 %r9, %r1, 5;
	mad.lo.u32 %r8, %r9, 512, %r8;
	bar.sync 0;
	stmatrix.sync.aligned.m8n8.{form}.shared.b16 [%r8], {{{", ".join(f"%r{10 + k}" for k in range(count))}}};
""".replace("	bar.sync", "".join(f"	not.b32 %r{10 + k}, %r6;\n" for k in range(4)) + "	bar.sync"),
            touched=True,
        )
        for form, count in (("x1", 1), ("x2", 2), ("x4", 4), ("x2.trans", 2))
    ),
)  # fmt: skip
