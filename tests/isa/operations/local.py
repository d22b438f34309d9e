"""Arithmetic and control: what touches no memory."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Binary, Reg, Special, Unary
from tests.isa.operations.operands import D0, D1, P0, P1, R0, R1, R2, R3, C, X

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
    ("trap", ops.Trap()),
]
