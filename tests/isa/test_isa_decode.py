"""Every family: an instruction and the operation that it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from mcheck.base.errors import Unsupported
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Name, Reg, Special, Unary
from mcheck.ir.memory import CANCEL_RESPONSES
from mcheck.isa import decode
from mcheck.isa import families as family_modules
from mcheck.isa.families import DIALECT, MODULES, find_family, ptx_families
from mcheck.isa.instruction import Instruction
from tests.effort import effort

Read = Callable[[str], Instruction]
Types = Callable[[str], str | None]

X, Y, Z = Name("x"), Name("y"), Name("z")
R0, R1, R2, R3 = (Reg(f"r{number}") for number in range(4))
D0, D1 = Reg("rd0"), Reg("rd1")
P0, P1 = Reg("p0"), Reg("p1")
C = Const


def pair(name: str, size: int) -> tuple[tuple[Name, Const], tuple[Name, Const]]:
    """A range of bytes, and that of the other CTA of the pair."""
    peer = Name(name, rank=Binary("^", Special("cluster_ctarank"), C(1)))
    return (Name(name), C(size)), (peer, C(size))


LOCAL: list[tuple[str, ops.Op]] = [
    ("mov.u32 r0, 5", ops.Alu(op="mov", type="u32", dsts=(R0,), srcs=(C(5),))),
    ("mov.u32 r0, %laneid", ops.Alu(op="mov", type="u32", dsts=(R0,), srcs=(Special("laneid"),))),
    ("mov.u64 rd0, x", ops.Alu(op="mov", type="u64", dsts=(D0,), srcs=(X,))),
    ("mov.u64 rd0, x + 512", ops.Alu(op="mov", type="u64", dsts=(D0,), srcs=(Binary("+", X, C(512)),))),
    ("mov.b128 rq0, rq1", ops.Alu(op="mov", type="b128", dsts=(Reg("rq0"),), srcs=(Reg("rq1"),))),
    ("mov.b64 rd0, {r0, r1}", ops.Alu(op="pack", type="b64", dsts=(D0,), srcs=(R0, R1))),
    ("mov.b64 {r0, _}, rd0", ops.Alu(op="unpack", type="b64", dsts=(R0, None), srcs=(D0,))),
    ("mov.b32 r0, {rs0, 7}", ops.Alu(op="pack", type="b32", dsts=(R0,), srcs=(Reg("rs0"), C(7)))),
    ("add.u32 r0, r1, 2", ops.Alu(op="add", type="u32", dsts=(R0,), srcs=(R1, C(2)))),
    ("add.sat.s32 r0, r1, r2", ops.Alu(op="add.sat", type="s32", dsts=(R0,), srcs=(R1, R2))),
    ("sub.s64 rd0, rd1, 2", ops.Alu(op="sub", type="s64", dsts=(D0,), srcs=(D1, C(2)))),
    ("mul.lo.u32 r0, r1, r2", ops.Alu(op="mul.lo", type="u32", dsts=(R0,), srcs=(R1, R2))),
    ("mul.wide.u32 rd0, r1, r2", ops.Alu(op="mul.wide", type="u32", dsts=(D0,), srcs=(R1, R2))),
    ("mad.hi.s32 r0, r1, r2, r3", ops.Alu(op="mad.hi", type="s32", dsts=(R0,), srcs=(R1, R2, R3))),
    ("div.s32 r0, r1, r2", ops.Alu(op="div", type="s32", dsts=(R0,), srcs=(R1, R2))),
    ("rem.u32 r0, r1, 7", ops.Alu(op="rem", type="u32", dsts=(R0,), srcs=(R1, C(7)))),
    ("abs.s32 r0, r1", ops.Alu(op="abs", type="s32", dsts=(R0,), srcs=(R1,))),
    ("neg.s32 r0, r1", ops.Alu(op="neg", type="s32", dsts=(R0,), srcs=(R1,))),
    ("min.u32 r0, r1, r2", ops.Alu(op="min", type="u32", dsts=(R0,), srcs=(R1, R2))),
    ("max.s64 rd0, rd1, 0", ops.Alu(op="max", type="s64", dsts=(D0,), srcs=(D1, C(0)))),
    ("and.b32 r0, r1, 0xff", ops.Alu(op="and", type="b32", dsts=(R0,), srcs=(R1, C(255)))),
    ("or.pred p0, p1, !p0", ops.Alu(op="or", type="pred", dsts=(P0,), srcs=(P1, Unary("!", P0)))),
    ("xor.b64 rd0, rd1, rd1", ops.Alu(op="xor", type="b64", dsts=(D0,), srcs=(D1, D1))),
    ("not.b32 r0, r1", ops.Alu(op="not", type="b32", dsts=(R0,), srcs=(R1,))),
    ("shl.b32 r0, r1, 2", ops.Alu(op="shl", type="b32", dsts=(R0,), srcs=(R1, C(2)))),
    ("shr.s64 rd0, rd1, r2", ops.Alu(op="shr", type="s64", dsts=(D0,), srcs=(D1, R2))),
    ("setp.eq.u32 p0, r1, 0", ops.Alu(op="setp.eq", type="u32", dsts=(P0,), srcs=(R1, C(0)))),
    ("setp.lt.s32 p0|p1, r1, r2", ops.Alu(op="setp.lt", type="s32", dsts=(P0, P1), srcs=(R1, R2))),
    (
        "setp.ne.and.b32 p0, r1, r2, !p1",
        ops.Alu(op="setp.ne.and", type="b32", dsts=(P0,), srcs=(R1, R2, Unary("!", P1))),
    ),
    ("selp.u32 r0, 1, r1, p0", ops.Alu(op="selp", type="u32", dsts=(R0,), srcs=(C(1), R1, P0))),
    ("cvt.u64.u32 rd0, r1", ops.Alu(op="cvt", type="u64", src_type="u32", dsts=(D0,), srcs=(R1,))),
    ("cvt.sat.s8.s32 r0, r1", ops.Alu(op="cvt.sat", type="s8", src_type="s32", dsts=(R0,), srcs=(R1,))),
    ("cvta.to.global.u64 rd0, rd1", ops.Alu(op="cvta", type="u64", dsts=(D0,), srcs=(D1,))),
    ("mapa.shared::cluster.u32 r0, r1, 1", ops.Alu(op="mapa", type="u32", dsts=(R0,), srcs=(R1, C(1)))),
    ("mapa.u64 rd0, x, r1", ops.Alu(op="mapa", type="u64", dsts=(D0,), srcs=(X, R1))),
    ("elect.sync r0|p0, -1", ops.Collective(op="elect", type="b32", dsts=(R0, P0), srcs=(), mask=C(-1))),
    ("elect.sync _|p0, r1", ops.Collective(op="elect", type="b32", dsts=(None, P0), srcs=(), mask=R1)),
    (
        "shfl.sync.bfly.b32 r0|p0, r1, 1, 31, -1",
        ops.Collective(op="shfl.bfly", type="b32", dsts=(R0, P0), srcs=(R1, C(1), C(31)), mask=C(-1)),
    ),
    (
        "vote.sync.any.pred p0, p1, -1",
        ops.Collective(op="vote.any", type="pred", dsts=(P0, None), srcs=(P1,), mask=C(-1)),
    ),
    (
        "match.any.sync.b32 r0, r1, -1",
        ops.Collective(op="match.any", type="b32", dsts=(R0, None), srcs=(R1,), mask=C(-1)),
    ),
    (
        "match.all.sync.b32 _, r1, -1",
        ops.Collective(op="match.all", type="b32", dsts=(None, None), srcs=(R1,), mask=C(-1)),
    ),
    (
        "redux.sync.max.s32 r0, r1, -1",
        ops.Collective(op="redux.max", type="s32", dsts=(R0, None), srcs=(R1,), mask=C(-1)),
    ),
    ("activemask.b32 r0", ops.Alu(op="activemask", type="b32", dsts=(R0,), srcs=())),
    ("nanosleep.u32 20", ops.Alu(op="nop", type="b32", dsts=(), srcs=())),
    ("bra.uni L1", ops.Branch(target="L1")),
    ("ret", ops.Exit()),
    ("exit", ops.Exit()),
    ("setmaxnreg.dec.sync.aligned.u32 40", ops.Alu(op="nop", type="b32", dsts=(), srcs=())),
    ("prefetch.tensormap [x]", ops.Prefetch(tensor_map=X)),
]

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
]

SYNCHRONISATION: list[tuple[str, ops.Op]] = [
    ("fence.sc.sys", ops.Fence(sem="sc", scope="sys")),
    ("fence.cluster", ops.Fence(sem="acq_rel", scope="cluster")),
    ("fence.acquire.cta", ops.Fence(sem="acquire", scope="cta")),
    ("membar.gl", ops.Fence(sem="sc", scope="gpu")),
    ("fence.mbarrier_init.release.cluster", ops.Fence(sem="release", scope="cluster", restrict="mbarrier_init")),
    (
        "fence.release.sync_restrict::shared::cta.cluster",
        ops.Fence(sem="release", scope="cluster", restrict="shared::cta"),
    ),
    (
        "fence.acquire.sync_restrict::shared::cluster.cluster",
        ops.Fence(sem="acquire", scope="cluster", restrict="shared::cluster"),
    ),
    ("fence.proxy.alias", ops.ProxyFence(kind="alias")),
    ("membar.proxy.async", ops.ProxyFence(kind="async")),
    ("fence.proxy.async", ops.ProxyFence(kind="async")),
    ("fence.proxy.async.shared::cta", ops.ProxyFence(kind="async", spaces=frozenset({"shared::cta"}))),
    ("fence.proxy.alias.release.sys", ops.ProxyFence(kind="alias", half="release", scope="sys")),
    (
        "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster",
        ops.ProxyFence(kind="async", half="release", scope="cluster", restrict="shared::cluster::read"),
    ),
    ("fence.proxy.tensormap::generic.release.gpu", ops.ProxyFence(kind="tensormap", half="release", scope="gpu")),
    (
        "fence.proxy.tensormap::generic.acquire.sys [x], 128",
        ops.ProxyFence(kind="tensormap", half="acquire", scope="sys", address=X, size=C(128)),
    ),
    (
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        ops.ProxyFence(kind="async", half="release", scope="cluster", restrict="shared::cta"),
    ),
    ("bar.sync 0", ops.Barrier(kind="sync", barrier=C(0))),
    ("bar.arrive 1, 64", ops.Barrier(kind="arrive", barrier=C(1), count=C(64))),
    ("barrier.sync r0, 128", ops.Barrier(kind="sync", barrier=R0, count=C(128), aligned=False)),
    ("barrier.cta.sync.aligned 3", ops.Barrier(kind="sync", barrier=C(3))),
    (
        "bar.red.popc.u32 r0, 2, 64, !p0",
        ops.Barrier(kind="red", barrier=C(2), count=C(64), red_op="popc", dst=R0, src=Unary("!", P0)),
    ),
    ("bar.red.or.pred p0, 2, p1", ops.Barrier(kind="red", barrier=C(2), red_op="or", dst=P0, src=P1)),
    ("barrier.cluster.arrive", ops.ClusterBarrier(kind="arrive", sem="release")),
    ("barrier.cluster.arrive.relaxed.aligned", ops.ClusterBarrier(kind="arrive", sem="relaxed", aligned=True)),
    ("barrier.cluster.wait.acquire", ops.ClusterBarrier(kind="wait", sem="acquire")),
    ("bar.warp.sync 0xffffffff", ops.WarpSync(mask=C(0xFFFFFFFF))),
    ("mbarrier.init.shared::cta.b64 [x], 2", ops.MbarrierInit(address=X, count=C(2))),
    ("mbarrier.init.layout::v0.b64 [x], 2", ops.MbarrierInit(address=X, count=C(2))),
    ("mbarrier.test_wait.phase_type::primary.b64 p0, [x], rd0", ops.MbarrierWait(address=X, dst=P0, state=D0)),
    (
        "mbarrier.try_wait.parity.phase_type::conditional.b64 p0, [x], 1",
        ops.MbarrierWait(address=X, dst=P0, parity=C(1), blocking=True),
    ),
    ("mbarrier.inval.b64 [x]", ops.MbarrierInval(address=X)),
    ("mbarrier.expect_tx.b64 [x], 16", ops.MbarrierTx(kind="expect", address=X, tx=C(16))),
    (
        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [x], r0",
        ops.MbarrierTx(kind="complete", address=X, tx=R0, scope="cluster", space="shared::cluster"),
    ),
    ("mbarrier.arrive.shared.b64 rd0, [x]", ops.MbarrierArrive(address=X, state=D0)),
    (
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [x], 2",
        ops.MbarrierArrive(address=X, count=C(2), scope="cluster", space="shared::cluster"),
    ),
    (
        "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [x], 1024",
        ops.MbarrierArrive(address=X, tx=C(1024), sem="relaxed"),
    ),
    (
        "mbarrier.arrive_drop.noComplete.shared.b64 rd0, [x], 1",
        ops.MbarrierArrive(address=X, count=C(1), drop=True, no_complete=True, state=D0),
    ),
    ("mbarrier.arrive_drop.expect_tx.b64 _, [x], 8", ops.MbarrierArrive(address=X, tx=C(8), drop=True)),
    ("mbarrier.test_wait.b64 p0, [x], rd0", ops.MbarrierWait(address=X, dst=P0, state=D0)),
    ("mbarrier.test_wait.parity.b64 p0, [x], 1", ops.MbarrierWait(address=X, dst=P0, parity=C(1))),
    (
        "mbarrier.try_wait.shared::cta.b64 p0, [x], rd0, 20",
        ops.MbarrierWait(address=X, dst=P0, state=D0, blocking=True),
    ),
    (
        "mbarrier.try_wait.parity.relaxed.cluster.b64 p0, [x], r0",
        ops.MbarrierWait(address=X, dst=P0, parity=R0, blocking=True, sem="relaxed", scope="cluster"),
    ),
    ("mbarrier.pending_count.b64 r0, rd0", ops.MbarrierPending(dst=R0, state=D0)),
]

_TENSOR = ops.TensorCopy(kind="load", dim=2, mode="tile", shared=X, tensor_map=Y, coords=(R0, C(8)), mbar=Z)

ASYNCHRONOUS: list[tuple[str, ops.Op]] = [
    ("cp.async.ca.shared.global [x], [y], 4", ops.CpAsync(dst=X, src=Y, size=C(4))),
    ("cp.async.cg.shared::cta.global.L2::64B [x], [y], 16, r0", ops.CpAsync(dst=X, src=Y, size=C(16), src_size=R0)),
    ("cp.async.ca.shared.global [x], [y], 8, p0", ops.CpAsync(dst=X, src=Y, size=C(8), ignore_src=P0)),
    (
        "cp.async.ca.shared.global.L2::cache_hint [x], [y], 8, !p0, rd0",
        ops.CpAsync(dst=X, src=Y, size=C(8), ignore_src=Unary("!", P0)),
    ),
    ("cp.async.ca.shared.global.L2::cache_hint [x], [y], 8, rd0", ops.CpAsync(dst=X, src=Y, size=C(8))),
    ("cp.async.commit_group", ops.Commit(family="cp.async")),
    ("cp.async.wait_group 1", ops.WaitGroup(family="cp.async", pending=C(1))),
    ("cp.async.wait_all", ops.WaitGroup(family="cp.async", pending=C(0), commits=True)),
    ("cp.async.mbarrier.arrive.noinc.shared.b64 [x]", ops.CpAsyncArrive(address=X, noinc=True)),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [x], [y], 16, [z], 3",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="shared::cluster", src_space="global", mbar=Z, cta_mask=C(3)),
    ),
    (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [x], [y], r0, [z]",
        ops.BulkCopy(dst=X, src=Y, size=R0, dst_space="shared::cta", src_space="global", mbar=Z),
    ),
    (
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [x], [y], 16, [z]",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="shared::cluster", src_space="shared::cta", mbar=Z),
    ),
    (
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [x], [y], 32, rd0, 255",
        ops.BulkCopy(dst=X, src=Y, size=C(32), dst_space="global", src_space="shared::cta", byte_mask=C(255)),
    ),
    (
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [x], [y], 16, [z]",
        ops.BulkCopy(
            dst=X,
            src=Y,
            size=C(16),
            dst_space="shared::cluster",
            src_space="shared::cta",
            mbar=Z,
            reduce="add",
            type="u64",
        ),
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [x], [y], 16",
        ops.BulkCopy(
            dst=X, src=Y, size=C(16), dst_space="global", src_space="shared::cta", reduce="add", type="bf16", noftz=True
        ),
    ),
    (
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [x], [y], 16",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="global", src_space="shared::cta", multimem=ops.Multimem()),
    ),
    (
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [x], [y], 16",
        ops.BulkCopy(
            dst=X,
            src=Y,
            size=C(16),
            dst_space="global",
            src_space="shared::cta",
            reduce="add",
            type="u32",
            scope="sys",
            multimem=ops.Multimem(),
        ),
    ),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::16b [x], [y], 8, [z], 3",
        ops.BulkCopy(dst=X, src=Y, size=C(8), dst_space="shared::cluster", src_space="global", mbar=Z, cta_mask=C(3)),
    ),
    (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [x], [y], 16, 0, 0, [z]",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="shared::cta", src_space="global", mbar=Z),
    ),
    (
        "cp.reduce.async.bulk.relaxed.sys.global.shared::cta.bulk_group.add.u32 [x], [y], 16",
        ops.BulkCopy(
            dst=X, src=Y, size=C(16), dst_space="global", src_space="shared::cta", reduce="add", type="u32", scope="sys"
        ),
    ),
    (
        "cp.async.bulk.weak.shared::cta.global.mbarrier::complete_tx::bytes [x], [y], 16, [z]",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="shared::cta", src_space="global", mbar=Z),
    ),
    ("cp.async.bulk.prefetch.L2.global [x], 64", ops.Prefetch(src=X, size=C(64))),
    ("prefetch.global.L2 [x]", ops.Prefetch()),
    ("prefetch.L1 [x]", ops.Prefetch()),
    ("cp.async.bulk.commit_group", ops.Commit(family="bulk")),
    ("cp.async.bulk.wait_group 0", ops.WaitGroup(family="bulk", pending=C(0))),
    (
        "cp.async.bulk.wait_group.sync_restrict::proxy::async 0",
        ops.WaitGroup(family="bulk", pending=C(0), restrict="proxy::async"),
    ),
    (
        "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [x], [y], 16",
        ops.BulkCopy(dst=X, src=Y, size=C(16), dst_space="global", src_space="shared::cta", type="b128", scope="gpu"),
    ),
    ("cp.async.bulk.wait_group.read 2", ops.WaitGroup(family="bulk", pending=C(2), read=True)),
    ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [x], [y, {r0, 8}], [z]", _TENSOR),
    # The order in which the documentation of the instruction writes one of its examples.
    (
        "cp.async.bulk.tensor.2d.tile.shared::cluster.global.mbarrier::complete_tx::bytes [x], [y, {r0, 8}], [z]",
        _TENSOR,
    ),
    (
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes"
            " [x], [y, {r0, r1, r2}], [z], {1}"
        ),
        ops.TensorCopy(
            kind="load",
            dim=3,
            mode="im2col",
            shared=X,
            tensor_map=Y,
            coords=(R0, R1, R2),
            dst_space="shared::cta",
            mbar=Z,
            im2col_info=(C(1),),
        ),
    ),
    (
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
            ".multicast::cluster.cta_group::2.L2::cache_hint [x], [y, {0, 1, 2, 3, 4}], [z], 5, rd0"
        ),
        ops.TensorCopy(
            kind="load",
            dim=2,
            mode="tile::gather4",
            shared=X,
            tensor_map=Y,
            coords=(C(0), C(1), C(2), C(3), C(4)),
            mbar=Z,
            cta_mask=C(5),
            cta_group=2,
        ),
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [y, {r0}], [x]",
        ops.TensorCopy(kind="store", dim=1, mode="tile", shared=X, tensor_map=Y, coords=(R0,), dst_space="global"),
    ),
    (
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.tile.bulk_group [y, {r0}], [x]",
        ops.TensorCopy(
            kind="store", dim=1, mode="tile", shared=X, tensor_map=Y, coords=(R0,), dst_space="global", reduce="min"
        ),
    ),
    (
        "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [y, {r0}]",
        ops.Prefetch(tensor_map=Y, coords=(R0,), mode="tile"),
    ),
    (
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [x], {r0, 1}, [z]",
        ops.AsyncStore(address=X, srcs=(R0, C(1)), type="u32", mbar=Z),
    ),
    (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [x], rq0, [z]",
        ops.AsyncStore(address=X, srcs=(Reg("rq0"),), type="b128", mbar=Z),
    ),
    ("st.bulk.weak.shared::cta [x], rd0, 0", ops.Fill(address=X, size=D0)),
    (
        "st.async.release.gpu.global.b64 [x], rd0",
        ops.AsyncStore(address=X, srcs=(D0,), type="b64", sem="release", scope="gpu", space="global"),
    ),
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [x], r0, [z]",
        ops.AsyncStore(address=X, srcs=(R0,), type="u32", mbar=Z, reduce="inc", sem="relaxed", scope="cluster"),
    ),
    (
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [x], 1, r0",
        ops.TensormapReplace(field_name="box_dim", address=X, value=R0, ordinal=C(1), space="shared::cta"),
    ),
    (
        "tensormap.replace.tile.global_address.global.b1024.b64 [x], rd0",
        ops.TensormapReplace(field_name="global_address", address=X, value=D0, type="b64", space="global"),
    ),
    (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [x], [y], 128",
        ops.TensormapCopyFence(dst=X, src=Y, size=C(128), scope="gpu"),
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {ff0, ff1}, [x, 8192], [y, 4096]",
        ops.Wgmma(reads=((X, C(8192)), (Y, C(4096)))),
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {ff0}, {r0, r1, r2, r3}, [y, 256], p0, 1, 1, 0",
        ops.Wgmma(reads=((Y, C(256)),)),
    ),
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
    ("trap", ops.Trap()),
    ("griddepcontrol.wait", ops.GridWait()),
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
    (
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [x], [y]",
        ops.BulkCopy(
            dst=X, src=Name(CANCEL_RESPONSES), size=C(16), dst_space="shared::cta", src_space="global", mbar=Y
        ),
    ),
    (
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p0, rq0",
        ops.Alu(op="unpack", type="b128", dsts=(None, None, None, P0), srcs=(Reg("rq0"),)),
    ),
    (
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r0, r1, r2, _}, rq0",
        ops.Alu(op="unpack", type="b128", dsts=(R0, R1, R2, None), srcs=(Reg("rq0"),)),
    ),
    (
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 r0, rq0",
        ops.Alu(op="unpack", type="b128", dsts=(None, R0, None, None), srcs=(Reg("rq0"),)),
    ),
    ("griddepcontrol.launch_dependents", ops.Alu(op="nop", type="b32", dsts=(), srcs=())),
    ("wgmma.fence.sync.aligned", ops.WgmmaFence()),
    ("wgmma.commit_group.sync.aligned", ops.Commit(family="wgmma")),
    ("wgmma.wait_group.sync.aligned 1", ops.WaitGroup(family="wgmma", pending=C(1))),
]

SHORT: list[tuple[str, ops.Op]] = [
    ("ld r0, 5", ops.Alu(op="mov", type="s32", dsts=(R0,), srcs=(C(5),))),
    ("ld.weak r0, x", ops.Load(dsts=(R0,), address=X, type="s32")),
    ("ld.acquire.sys r0, x", ops.Load(dsts=(R0,), address=X, type="s32", sem="acquire", scope="sys")),
    ("tld.weak r0, x", ops.Load(dsts=(R0,), address=X, type="s32", proxy="texture")),
    (
        "suld.relaxed.gpu r0, x",
        ops.Load(dsts=(R0,), address=X, type="s32", sem="relaxed", scope="gpu", proxy="surface"),
    ),
    ("cold.weak r0, x", ops.Load(dsts=(R0,), address=X, type="s32", proxy="constant")),
    ("st.weak x, 1", ops.Store(address=X, srcs=(C(1),), type="s32")),
    (
        "sust.release.cta x, r0",
        ops.Store(address=X, srcs=(R0,), type="s32", sem="release", scope="cta", proxy="surface"),
    ),
    (
        "atom.acq_rel.gpu.add r0, x, 1",
        ops.Atomic(dst=R0, op="add", address=X, srcs=(C(1),), type="s32", sem="acq_rel", scope="gpu"),
    ),
    (
        "suatom.relaxed.cta.cas r0, x, r1, 2",
        ops.Atomic(dst=R0, op="cas", address=X, srcs=(R1, C(2)), type="s32", scope="cta", proxy="surface"),
    ),
    (
        "red.release.sys.mul x, 3",
        ops.Atomic(dst=None, op="mul", address=X, srcs=(C(3),), type="s32", sem="release", scope="sys", is_red=True),
    ),
    (
        "sured.relaxed.gpu.or x, r0",
        ops.Atomic(dst=None, op="or", address=X, srcs=(R0,), type="s32", scope="gpu", proxy="surface", is_red=True),
    ),
    ("add r0, r1, 1", ops.Alu(op="add", type="s32", dsts=(R0,), srcs=(R1, C(1)))),
    ("sub r0, 1, r1", ops.Alu(op="sub", type="s32", dsts=(R0,), srcs=(C(1), R1))),
    ("mul r0, r1, r2", ops.Alu(op="mul.lo", type="s32", dsts=(R0,), srcs=(R1, R2))),
    ("div r0, r1, 2", ops.Alu(op="div", type="s32", dsts=(R0,), srcs=(R1, C(2)))),
    ("bne r0, 0, LC01", ops.Branch(target="LC01", condition=Binary("!=", R0, C(0)))),
    ("beq r0, r1, LC", ops.Branch(target="LC", condition=Binary("==", R0, R1))),
    ("blt r0, 1, LC", ops.Branch(target="LC", condition=Binary("<", R0, C(1)))),
    ("bgt r0, 1, LC", ops.Branch(target="LC", condition=Binary(">", R0, C(1)))),
    ("ble r0, 1, LC", ops.Branch(target="LC", condition=Binary("<=", R0, C(1)))),
    ("bge r0, 1, LC", ops.Branch(target="LC", condition=Binary(">=", R0, C(1)))),
    ("goto LC", ops.Branch(target="LC")),
    ("fence.acq_rel.gpu", ops.Fence(sem="acq_rel", scope="gpu")),
    ("fence.proxy.texture", ops.ProxyFence(kind="texture")),
    ("bar.cta.sync 1", ops.Barrier(kind="sync", barrier=None, aligned=False, instance=1)),
    (
        "bar.cta.arrive 1, r0, 2",
        ops.Barrier(kind="arrive", barrier=R0, count=C(2), aligned=False, instance=1),
    ),
]

_LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
UNFOLLOWED = (
    "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.cp_mask.b128 [x], [y], 16, 3",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [x], [y], 16, 4, 0, [z]",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b [x], [y], 16, [z], r0",
    f"{_LOAD}.mbarrier::report::validity::per_16bytes::8 [x], [y], 16, [z]",
    "cp.reduce.async.bulk.relaxed.cta.global.shared::cta.bulk_group.add.u32 [x], [y], 16",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [x], [y], 16",
    "cp.async.bulk.wait_group.sync_restrict::shared::cta 0",
    "cp.async.bulk.wait_group.read.sync_restrict::shared::cluster 0",
    "mbarrier.init.layout::v1.shared::cta.b64 [x], 2",
    "mbarrier.check_layout.layout::v0.shared::cta.b64 p0, [x]",
    "mbarrier.test_wait.phase_type::primary.b64 p0|p1, [x], rd0",
    "mbarrier.expect_tx.shared::cluster.multicast::cluster::32b.b64 [x], 16, r0",
    "mbarrier.arrive.shared::cluster.multicast::cluster::32b.b64 _, [x], r0",
    "ld.global.u32.proxy::readonly r0, [x]",
    "red.async.relaxed.gpu.add.u32 [x], r0",
    "fence.proxy.generic::fabric.alias.release.sys",
    "fence.alias.release.sync_restrict::read.sys",
    "multimem.st.async.release.sys.global.u32 [x], r0",
    "multimem.red.async.release.sys.global.add.u32 [x], r0",
    "multimem.cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.cp_mask.b128 [x], [y], 16, rs0",
    "fabric.submit",
)
"""Forms of PTX 9.1 to 9.5 that are legal and have no model."""

ALL = [*LOCAL, *MEMORY, *SYNCHRONISATION, *ASYNCHRONOUS, *SHORT]


def _plain(op: ops.Op) -> ops.Op:
    """``op`` without what it carries about its place in the text."""
    return replace(op, section="", guard=None)


@pytest.mark.parametrize(("text", "op"), ALL, ids=[text for text, _ in ALL])
def test_operation(text: str, op: ops.Op, read: Read, register_type: Types) -> None:
    decoded = decode(read(text), register_type=register_type)
    assert _plain(decoded) == op
    assert decoded.section
    assert decoded.text == text


@pytest.mark.parametrize("text", UNFOLLOWED)
def test_what_has_no_model_is_named(text: str, read: Read, register_type: Types) -> None:
    with pytest.raises(Unsupported) as caught:
        decode(read(text), target="sm_107a", register_type=register_type, dialect=False)
    name = text.partition(".")[0]
    assert f"'{text}' is legal" in caught.value.message or f"'{name}' is a PTX" in caught.value.message


def test_every_family_is_decoded_here() -> None:
    """An instruction belongs to the family with the longest name that it starts with."""

    def family_of(text: str, names: set[str]) -> str:
        opcode = text.split(" ", 1)[0]
        return max((name for name in names if opcode == name or opcode.startswith(name + ".")), key=len, default="")

    ptx = {family.name for family in ptx_families()}
    short = {family.name for family in DIALECT}
    assert {family_of(text, ptx) for text in (*(text for text, _ in ALL), *UNFOLLOWED)} >= ptx
    assert {family_of(text, short) for text, _ in SHORT} >= short


def test_a_family_is_in_the_module_that_is_imported_for_its_name() -> None:
    for module, names in MODULES.items():
        found = import_module(f"mcheck.isa.families.{module}").FAMILIES
        assert [family.name for family in found] == names.split()
    folder = Path(family_modules.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__", "common", "dialect"} == set(MODULES)
    for family in ptx_families():
        assert find_family(family.head) is family
    assert find_family(("st", "unheard")) is None


def test_the_table_is_complete_and_its_names_are_unique() -> None:
    for families in (ptx_families(), DIALECT):
        names = [family.name for family in families]
        assert len(set(names)) == len(names)
    for family in (*ptx_families(), *DIALECT):
        assert family.section
        assert family.title
        assert family.variants
        for variant in family.variants:
            slots = [slot.name for slot in variant.slots]
            assert len(set(slots)) == len(slots)
            args = [arg.name for arg in variant.args]
            assert len(set(args)) == len(args)
            for rule in variant.rules:
                assert rule.slot in slots


def test_the_dialect_can_be_left_out(read: Read) -> None:
    barrier = decode(read("bar.cta.sync 0, 64"), dialect=False)
    assert _plain(barrier) == ops.Barrier(kind="sync", barrier=C(0), count=C(64))


def test_a_guard_and_the_place_are_kept(read: Read) -> None:
    op = decode(read("@!p1 st.global.u32 [x], 1"))
    assert op.guard == ops.Guard(P1, negated=True)
    assert op.span is not None
    assert op.section == "9.7.9.11"


@pytest.mark.parametrize("text", ["mbarrier.try_wait.parity.b64 [x], 1", "mbarrier.try_wait.parity.b64 _, [x], 1"])
def test_an_awaited_wait_leaves_its_result_out(text: str, read: Read) -> None:
    op = decode(read(text), awaited=True)
    assert _plain(op) == ops.MbarrierWait(address=X, dst=None, parity=C(1), blocking=True)


@pytest.mark.parametrize(
    "text", ["ld.relaxed.gpu r0, x", "ld.global.u32 r0, [x]", "add.u32 r0, r1, r2", ASYNCHRONOUS[9][0]]
)
def test_decoding_is_fast(text: str, read: Read, register_type: Types) -> None:
    """Some 10 microseconds; the bound leaves room for a loaded machine."""
    instruction = read(text)
    decode(instruction, register_type=register_type)

    def often() -> None:
        for _ in range(20):
            decode(instruction, register_type=register_type)

    assert effort(often, 20 * 100e-6, tries=20) < 20 * 100e-6
