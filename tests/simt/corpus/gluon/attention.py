"""Attention: a loading warp and a ring each for K and V on sm_90; scores and weights in tensor memory on sm_100."""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, tcgen05_mma
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def loading(q_desc, k_desc, v_desc, q, k, v, qb, kf, ke, vf, ve, start, rounds, STAGES: gl.constexpr):
    bn: gl.constexpr = k_desc.block_type.shape[0]
    mbarrier.expect(qb, q_desc.block_type.nbytes)
    tma.async_load(q_desc, [start, 0], qb, q)
    for i in range(rounds):
        s = i % STAGES
        phase = ((i // STAGES) & 1) ^ 1
        mbarrier.wait(ke.index(s), phase)
        mbarrier.expect(kf.index(s), k_desc.block_type.nbytes)
        tma.async_load(k_desc, [i * bn, 0], kf.index(s), k.index(s))
        mbarrier.wait(ve.index(s), phase)
        mbarrier.expect(vf.index(s), v_desc.block_type.nbytes)
        tma.async_load(v_desc, [i * bn, 0], vf.index(s), v.index(s))


@gluon.jit
def multiplying(o_desc, q, k, v, qb, kf, ke, vf, ve, start, rounds, scale, STAGES: gl.constexpr, bn: gl.constexpr):
    bm: gl.constexpr = o_desc.block_type.shape[0]
    hd: gl.constexpr = o_desc.block_type.shape[1]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, bn, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, hd, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    row: gl.constexpr = gl.SliceLayout(1, o_layout)
    top = gl.full([bm], float("-inf"), gl.float32, row)
    total = gl.zeros([bm], gl.float32, row)
    o = gl.zeros((bm, hd), gl.float32, o_layout)
    mbarrier.wait(qb, 0)
    for i in range(rounds):
        s = i % STAGES
        phase = (i // STAGES) & 1
        mbarrier.wait(kf.index(s), phase)
        x = warpgroup_mma(
            q, k.index(s).permute((1, 0)), gl.zeros((bm, bn), gl.float32, s_layout), use_acc=False, is_async=True
        )
        x = warpgroup_mma_wait(num_outstanding=0, deps=(x,))
        mbarrier.arrive(ke.index(s), count=1)
        x = x * scale
        new = gl.maximum(top, gl.convert_layout(gl.max(x, 1), row))
        p = gl.exp2(x - gl.convert_layout(new, gl.SliceLayout(1, s_layout))[:, None])
        alpha = gl.exp2(top - new)
        total = total * alpha + gl.convert_layout(gl.sum(p, 1), row)
        o = o * alpha[:, None]
        top = new
        mbarrier.wait(vf.index(s), phase)
        o = warpgroup_mma(gl.convert_layout(p.to(gl.float16), p_layout), v.index(s), o, is_async=True)
        o = warpgroup_mma_wait(num_outstanding=0, deps=(o,))
        mbarrier.arrive(ve.index(s), count=1)
    o = o / total[:, None]
    # Q is read no more: its place takes the result
    q.store(o.to(gl.float16))
    fence_async_shared()
    tma.async_store(o_desc, [start, 0], q)
    tma.store_wait(0)


@gluon.jit
def attention(q_desc, k_desc, v_desc, o_desc, N, scale, STAGES: gl.constexpr):
    bn: gl.constexpr = k_desc.block_type.shape[0]
    q = gl.allocate_shared_memory(gl.float16, q_desc.block_type.shape, q_desc.layout)
    k = gl.allocate_shared_memory(
        gl.float16, [STAGES, k_desc.block_type.shape[0], k_desc.block_type.shape[1]], k_desc.layout
    )
    v = gl.allocate_shared_memory(
        gl.float16, [STAGES, v_desc.block_type.shape[0], v_desc.block_type.shape[1]], v_desc.layout
    )
    qb = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    kf = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    ke = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    vf = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    ve = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(qb, count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(kf.index(i), count=1)
        mbarrier.init(ke.index(i), count=1)
        mbarrier.init(vf.index(i), count=1)
        mbarrier.init(ve.index(i), count=1)
    fence_async_shared()
    start = gl.program_id(0) * q_desc.block_type.shape[0]
    rounds = gl.cdiv(N, bn)
    gl.warp_specialize(
        [
            (multiplying, (o_desc, q, k, v, qb, kf, ke, vf, ve, start, rounds, scale, STAGES, bn)),
            (loading, (q_desc, k_desc, v_desc, q, k, v, qb, kf, ke, vf, ve, start, rounds, STAGES)),
        ],
        [1],
        [24],
    )


@gluon.jit
def in_tensor_memory(q_desc, k_desc, v_desc, o_desc, N, scale):
    bm: gl.constexpr = q_desc.block_type.shape[0]
    hd: gl.constexpr = q_desc.block_type.shape[1]
    bn: gl.constexpr = k_desc.block_type.shape[0]
    q = gl.allocate_shared_memory(gl.float16, [bm, hd], q_desc.layout)
    k = gl.allocate_shared_memory(gl.float16, [2, bn, hd], k_desc.layout)
    v = gl.allocate_shared_memory(gl.float16, [2, bn, hd], v_desc.layout)
    qb = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    kb = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    vb = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    sb = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    ob = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(qb, count=1)
    mbarrier.init(sb, count=1)
    mbarrier.init(ob, count=1)
    for i in gl.static_range(2):
        mbarrier.init(kb.index(i), count=1)
        mbarrier.init(vb.index(i), count=1)
    fence_async_shared()
    st = allocate_tensor_memory(gl.float32, [bm, bn], TensorMemoryLayout([bm, bn], col_stride=1))
    pt = allocate_tensor_memory(gl.float16, [bm, bn], TensorMemoryLayout([bm, bn], col_stride=1))
    ot = allocate_tensor_memory(gl.float32, [bm, hd], TensorMemoryLayout([bm, hd], col_stride=1))
    m = gl.program_id(0) * bm
    rounds = gl.cdiv(N, bn)
    mbarrier.expect(qb, q_desc.block_type.nbytes)
    tma.async_load(q_desc, [m, 0], qb, q)
    mbarrier.expect(kb.index(0), k_desc.block_type.nbytes)
    tma.async_load(k_desc, [0, 0], kb.index(0), k.index(0))
    mbarrier.expect(vb.index(0), v_desc.block_type.nbytes)
    tma.async_load(v_desc, [0, 0], vb.index(0), v.index(0))
    mbarrier.wait(qb, 0)
    s_layout: gl.constexpr = st.get_reg_layout()
    o_layout: gl.constexpr = ot.get_reg_layout()
    top = gl.full([bm], float("-inf"), gl.float32, gl.SliceLayout(1, s_layout))
    total = gl.zeros([bm], gl.float32, gl.SliceLayout(1, s_layout))
    for i in range(rounds):
        s = i % 2
        phase = (i // 2) & 1
        mbarrier.wait(kb.index(s), phase)
        tcgen05_mma(q, k.index(s).permute((1, 0)), st, use_acc=False, mbarriers=[sb])
        mbarrier.wait(sb, i & 1)
        # both products of the round before are over: the other stage is free
        nxt = i + 1
        mbarrier.expect(kb.index(1 - s), k_desc.block_type.nbytes, pred=nxt < rounds)
        tma.async_load(k_desc, [nxt * bn, 0], kb.index(1 - s), k.index(1 - s), pred=nxt < rounds)
        mbarrier.expect(vb.index(1 - s), v_desc.block_type.nbytes, pred=nxt < rounds)
        tma.async_load(v_desc, [nxt * bn, 0], vb.index(1 - s), v.index(1 - s), pred=nxt < rounds)
        x = st.load() * scale
        new = gl.maximum(top, gl.max(x, 1))
        p = gl.exp2(x - new[:, None])
        alpha = gl.exp2(top - new)
        total = total * alpha + gl.sum(p, 1)
        top = new
        if i > 0:
            o = ot.load()
            ot.store(o * gl.convert_layout(alpha, gl.SliceLayout(1, o_layout))[:, None])
        pt.store(gl.convert_layout(p.to(gl.float16), pt.get_reg_layout()))
        mbarrier.wait(vb.index(s), phase)
        tcgen05_mma(pt, v.index(s), ot, use_acc=i > 0, mbarriers=[ob])
        mbarrier.wait(ob, i & 1)
    o = ot.load() / gl.convert_layout(total, gl.SliceLayout(1, o_layout))[:, None]
    q.store(o.to(gl.float16))
    fence_async_shared()
    tma.async_store(o_desc, [m, 0], q)
    tma.store_wait(0)


def compile_(fn, signature, constants, capability, warps=4):
    source = GluonASTSource(fn, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})


def descriptor(dtype, block):
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    return f"tensordesc<{dtype}[{block[0]}, {block[1]}],{layout!r}>"


def hopper(block=64, width=64, stages=2):
    tile = descriptor("fp16", (block, width))
    signature = dict.fromkeys(("q_desc", "k_desc", "v_desc", "o_desc"), tile) | {"N": "i32", "scale": "fp32"}
    return compile_(attention, signature, {"STAGES": stages}, 90)


def blackwell(rows=128, block=64, width=64):
    tile, keys = descriptor("fp16", (rows, width)), descriptor("fp16", (block, width))
    signature = {"q_desc": tile, "k_desc": keys, "v_desc": keys, "o_desc": tile, "N": "i32", "scale": "fp32"}
    return compile_(in_tensor_memory, signature, {}, 100)
