"""Matrix products of a warpgroup and of a CTA, and tensor memory."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Binary
from tests.isa.operations.operands import C, X, Y, Z, pair

TENSOR_CORE: list[tuple[str, ops.Op]] = [
    (
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {ff0, ff1}, [x, 8192], [y, 4096]",
        ops.Wgmma(reads=((X, C(8192)), (Y, C(4096)))),
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {ff0}, {r0, r1, r2, r3}, [y, 256], p0, 1, 1, 0",
        ops.Wgmma(reads=((Y, C(256)),)),
    ),
    (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [x], 64",
        ops.TensorCore(kind="alloc", reads=(), writes=((X, C(4)),), columns=C(64)),
    ),
    (
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32 r0, 64",
        ops.TensorCore(kind="dealloc", reads=(), writes=(), columns=C(64)),
    ),
    (
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
        ops.Alu(op="nop", type="b32", dsts=(), srcs=()),
    ),
    (
        "tcgen05.ld.sync.aligned.16x128b.x2.pack::16b.b32 {r0, r1, r2, r3}, [x]",
        ops.TensorMove(family="tcgen05.ld", address=X, size=64),
    ),
    (
        "tcgen05.st.sync.aligned.32x32b.x2.b32 [x], {r0, r1}",
        ops.TensorMove(family="tcgen05.st", address=X, size=8),
    ),
    ("tcgen05.wait::ld.sync.aligned", ops.WaitGroup(family="tcgen05.ld", pending=C(0), commits=True)),
    ("tcgen05.wait::st.sync.aligned", ops.WaitGroup(family="tcgen05.st", pending=C(0), commits=True)),
    ("tcgen05.fence::before_thread_sync", ops.Fence(sem="release", scope="cluster", restrict="tensor")),
    ("tcgen05.fence::after_thread_sync", ops.Fence(sem="acquire", scope="cluster", restrict="tensor")),
    (
        "tcgen05.mma.cta_group::1.kind::f16 [x, 64], [y, 32], [z, 16], r0, p0",
        ops.TensorCore(kind="mma", reads=((Y, C(32)), (Z, C(16))), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32 [x, 64], [y, 32], [z, 16], [x, 8], [x, 4]",
        ops.TensorCore(
            kind="mma",
            reads=(*pair("y", 32), *pair("z", 16), *pair("x", 8), *pair("x", 4)),
            writes=pair("x", 64),
        ),
    ),
    (
        "tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {r0, r1}, [x], 8",
        ops.TensorMove(family="tcgen05.ld", address=X, size=8, apart=Binary("*", C(8), C(4))),
    ),
    (
        "tcgen05.ld.red.sync.aligned.32x32b.x4.min.abs.NaN.f32 {r0, r1, r2, r3}, r4, [x]",
        ops.TensorMove(family="tcgen05.ld", address=X, size=16),
    ),
    (
        "tcgen05.ld.red.sync.aligned.16x32bx2.x2.u32.max {r0, r1}, r2, [x], 16",
        ops.TensorMove(family="tcgen05.ld", address=X, size=8, apart=Binary("*", C(16), C(4))),
    ),
    (
        "tcgen05.st.sync.aligned.16x32bx2.x2.unpack::16b.b32 [x], 8, {r0, r1}",
        ops.TensorMove(family="tcgen05.st", address=X, size=16, apart=Binary("*", C(8), C(4))),
    ),
    (
        "tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::lastuse [x, 64], [y, 32], [z, 16]",
        ops.TensorCore(kind="mma", reads=((Y, C(32)), (Z, C(16))), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [x, 64], [y, 32], [z, 16], r0, [x, 8], [x, 4], p0",
        ops.TensorCore(kind="mma", reads=((Y, C(32)), (Z, C(16)), (X, C(8)), (X, C(4))), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.mma.sp.cta_group::2.kind::tf32.collector::a::fill [x, 64], [y, 32], [z, 16], [y, 8], r0, p0",
        ops.TensorCore(kind="mma", reads=(*pair("y", 32), *pair("z", 16), *pair("y", 8)), writes=pair("x", 64)),
    ),
    (
        "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale [x, 64], [y, 32], [z, 16], [y, 8], [x, 8], [x, 4]",
        ops.TensorCore(
            kind="mma", reads=((Y, C(32)), (Z, C(16)), (Y, C(8)), (X, C(8)), (X, C(4))), writes=((X, C(64)),)
        ),
    ),
    (
        "tcgen05.mma.ws.cta_group::1.kind::i8.collector::b3::use [x, 64], [y, 32], [z, 16]",
        ops.TensorCore(kind="mma", reads=((Y, C(32)), (Z, C(16))), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.mma.ws.sp.cta_group::1.kind::f16 [x, 64], [y, 32], [z, 16], [y, 8]",
        ops.TensorCore(kind="mma", reads=((Y, C(32)), (Z, C(16)), (Y, C(8))), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [x, 64], [y, 32]",
        ops.TensorCore(kind="cp", reads=((Y, C(32)),), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.shift.cta_group::1.down [x, 64]",
        ops.TensorCore(kind="shift", reads=(), writes=((X, C(64)),)),
    ),
    (
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [x], 3",
        ops.TensorCommit(address=X, cta_mask=C(3)),
    ),
    ("wgmma.fence.sync.aligned", ops.WgmmaFence()),
    ("wgmma.commit_group.sync.aligned", ops.Commit(family="wgmma")),
    ("wgmma.wait_group.sync.aligned 1", ops.WaitGroup(family="wgmma", pending=C(1))),
]
