"""The short forms of litmus tests in table form."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Binary
from tests.isa.operations.operands import R0, R1, R2, C, X

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
