"""Loads, stores and atomics."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Binary
from tests.isa.operations.operands import D0, D1, R0, R1, R2, R3, C, X

MEMORY: list[tuple[str, ops.Op]] = [
    ("ld.global.u32 r0, [x]", ops.Load(dsts=(R0,), address=X, type="u32", space="global")),
    ("ld.u64 rd0, [rd1 + 8]", ops.Load(dsts=(D0,), address=Binary("+", D1, C(8)), type="u64")),
    (
        "ld.acquire.gpu.global.u32 r0, [x]",
        ops.Load(dsts=(R0,), address=X, type="u32", sem="acquire", scope="gpu", space="global"),
    ),
    (
        "ld.volatile.shared.u32 r0, [x]",
        ops.Load(dsts=(R0,), address=X, type="u32", sem="relaxed", scope="sys", space="shared::cta", volatile=True),
    ),
    (
        "ld.mmio.relaxed.sys.global.u32 r0, [x]",
        ops.Load(dsts=(R0,), address=X, type="u32", sem="relaxed", scope="sys", space="global", volatile=True),
    ),
    (
        "ld.mmio.acquire.sys.global.u32 r0, [x]",
        ops.Load(dsts=(R0,), address=X, type="u32", sem="acquire", scope="sys", space="global", volatile=True),
    ),
    (
        "st.mmio.release.sys.global.u32 [x], r0",
        ops.Store(srcs=(R0,), address=X, type="u32", sem="release", scope="sys", space="global", volatile=True),
    ),
    (
        "ld.shared::cluster.v2.b32 {r0, r1}, [x]",
        ops.Load(dsts=(R0, R1), address=X, type="b32", space="shared::cluster"),
    ),
    (
        "ld.weak.global.L1::evict_last.L2::cache_hint.L2::128B.v4.u32 {r0, r1, r2, r3}, [x], rd1",
        ops.Load(dsts=(R0, R1, R2, R3), address=X, type="u32", space="global"),
    ),
    ("st.global.u32 [x], 1", ops.Store(address=X, srcs=(C(1),), type="u32", space="global")),
    (
        "st.release.cluster.shared::cluster.u64 [x + 8], rd0",
        ops.Store(
            address=Binary("+", X, C(8)),
            srcs=(D0,),
            type="u64",
            sem="release",
            scope="cluster",
            space="shared::cluster",
        ),
    ),
    ("st.wt.v2.u32 [x], {r0, 5}", ops.Store(address=X, srcs=(R0, C(5)), type="u32")),
    (
        "st.volatile.global.u8 [x], r0",
        ops.Store(address=X, srcs=(R0,), type="u8", sem="relaxed", scope="sys", space="global", volatile=True),
    ),
    (
        "atom.global.add.u32 r0, [x], 1",
        ops.Atomic(dst=R0, op="add", address=X, srcs=(C(1),), type="u32", space="global"),
    ),
    (
        "atom.acq_rel.sys.shared::cta.cas.b32 r0, [x], r1, r2",
        ops.Atomic(
            dst=R0, op="cas", address=X, srcs=(R1, R2), type="b32", sem="acq_rel", scope="sys", space="shared::cta"
        ),
    ),
    ("atom.exch.b64 _, [x], rd0", ops.Atomic(dst=None, op="exch", address=X, srcs=(D0,), type="b64")),
    (
        "red.release.gpu.global.max.s32 [x], r0",
        ops.Atomic(
            dst=None,
            op="max",
            address=X,
            srcs=(R0,),
            type="s32",
            sem="release",
            scope="gpu",
            space="global",
            is_red=True,
        ),
    ),
    (
        "multimem.ld_reduce.acquire.sys.global.add.u32 r0, [x]",
        ops.Load(
            dsts=(R0,),
            address=X,
            type="u32",
            sem="acquire",
            scope="sys",
            space="global",
            multimem=ops.Multimem(combine="add"),
        ),
    ),
    (
        "multimem.ld_reduce.add.acc::f32.v2.f16x2 {r0, r1}, [x]",
        ops.Load(dsts=(R0, R1), address=X, type="b32", multimem=ops.Multimem(combine="opaque", packed=2)),
    ),
    (
        "multimem.st.release.gpu.global.b64 [x], rd0",
        ops.Store(
            address=X, srcs=(D0,), type="b64", sem="release", scope="gpu", space="global", multimem=ops.Multimem()
        ),
    ),
    (
        "multimem.st.v2.bf16x2 [x], {r0, r1}",
        ops.Store(address=X, srcs=(R0, R1), type="b32", multimem=ops.Multimem(packed=2)),
    ),
    (
        "multimem.red.release.gpu.global.and.b32 [x], 1",
        ops.Atomic(
            dst=None,
            op="and",
            address=X,
            srcs=(C(1),),
            type="b32",
            sem="release",
            space="global",
            is_red=True,
            multimem=ops.Multimem(),
        ),
    ),
    (
        "multimem.red.add.v2.f16x2 [x], {r0, r1}",
        ops.Atomic(
            dst=None,
            op="add",
            address=X,
            srcs=(R0, R1),
            type="f16",
            scope="sys",
            is_red=True,
            multimem=ops.Multimem(packed=2),
        ),
    ),
    ("prefetch.global.L2 [x]", ops.Prefetch()),
    ("prefetch.L1 [x]", ops.Prefetch()),
    ("st.bulk.weak.shared::cta [x], rd0, 0", ops.Fill(address=X, size=D0)),
    (
        "ld.global.nc.v2.u32 {r0, r1}, [x]",
        ops.Load(dsts=(R0, R1), address=X, type="u32", space="global", non_coherent=True),
    ),
    (
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {r0, r1}, [x]",
        ops.Load(dsts=(R0, R1, None, None), address=X, type="b32", space="shared::cta", matrix_rows=16),
    ),
    (
        "ldmatrix.sync.aligned.m16n16.x2.trans.b8x16.b4x16_p64 {r0, r1, r2, r3}, [x]",
        ops.Load(dsts=(R0, R1, R2, R3), address=X, type="b32", matrix_rows=32),
    ),
    (
        "stmatrix.sync.aligned.m16n8.x4.trans.shared::cta.b8 [x], {r0, r1, r2, r3}",
        ops.Store(address=X, srcs=(R0, R1, R2, R3), type="b32", space="shared::cta", matrix_rows=32),
    ),
    (
        "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 rd0, [x], 1024, r1",
        ops.Alu(op="opaque", type="b64", dsts=(D0,), srcs=()),
    ),
]
