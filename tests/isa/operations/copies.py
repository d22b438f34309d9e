"""Asynchronous copies and stores, tensor maps, and requests of clusters."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Name, Reg, Unary
from mcheck.ir.memory import CANCEL_RESPONSES
from tests.isa.operations.operands import D0, P0, R0, R1, R2, C, X, Y, Z

_TENSOR = ops.TensorCopy(kind="load", dim=2, mode="tile", shared=X, tensor_map=Y, coords=(R0, C(8)), mbar=Z)

COPIES: list[tuple[str, ops.Op]] = [
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
]
