"""Fences, barriers, mbarriers, and what waits for other grids."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Unary
from tests.isa.operations.operands import D0, P0, P1, R0, C, X

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
    ("griddepcontrol.wait", ops.GridWait()),
    ("griddepcontrol.launch_dependents", ops.Alu(op="nop", type="b32", dsts=(), srcs=())),
]
