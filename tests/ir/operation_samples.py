"""Operations of each class, and the events that they have."""

from __future__ import annotations

from dataclasses import replace

from mcheck.events import emit_async, emit_barrier, emit_mbarrier, emit_tensor_core
from mcheck.events.emit import Emitter
from mcheck.events.event import Event
from mcheck.events.model_options import Semantics
from mcheck.events.thread_state import State
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import Instance, MemObject
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.semantics.tensor_map_values import encode

REGISTERING_MODULES = (emit_async, emit_barrier, emit_mbarrier, emit_tensor_core)
"""Imported for the handlers that they register."""

TEXT = """PTX facets
{
  .global .align 128 .b8 g[256];
  .global .align 16 .u32 tensor[4] = {1, 2, 3, 4};
  .global .tensormap map = { global_address = tensor, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
    box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 s[256];
  .shared .align 8 .b64 bar;
}
one@cluster 0, cta 0, warp 0..2, lane 0..2 { }
two@cluster 0, cta 1 { }
"""
TENSOR_MEMORY = 0x80_0000

PROGRAM = parse(TEXT, "facets.litmus")


def place(name: str, offset: int = 0, cta: int = 0) -> Const:
    found = next(i for i in PROGRAM.memory.instances if i.object.name == name and i.cta in (None, CTAS[cta]))
    return Const(found.base + offset)


def with_tensor_memory(program: Program) -> Program:
    cells = MemObject(name="t", space="tensor", elem="b8", elem_size=1, size=256)
    own = next(i for i in program.memory.instances if i.object.name == "s")
    there = Instance(cells, own.base + TENSOR_MEMORY, own.base + TENSOR_MEMORY, own.cta)
    instances = tuple(sorted((*program.memory.instances, there), key=lambda i: i.base))
    return replace(program, memory=replace(program.memory, instances=instances))


CTAS = sorted({t.place.cta for t in PROGRAM.threads}, key=lambda cta: cta.number)
PROGRAM = with_tensor_memory(PROGRAM)

R, P = Reg("r"), Reg("p")
G, S, MAP, BAR, T, TENSOR = place("g"), place("s"), place("map"), place("bar"), place("t"), place("tensor")
S2, BAR2, ZERO, ONE, SIZE, MASK = place("s", 0, 1), place("bar", 0, 1), Const(0), Const(1), Const(16), Const(3)
MAP_SIZE = Const(128)


def bulk(reduce: str | None = None) -> Op:
    return ops.BulkCopy(
        dst=S, src=G, size=SIZE, dst_space="shared::cta", src_space="global", mbar=None if reduce else BAR,
        reduce=reduce, type=reduce and "u32",
    )  # fmt: skip


def tensor(kind: str) -> Op:
    mbar = BAR if kind == "load" else None
    return ops.TensorCopy(kind=kind, dim=1, mode="tile", shared=S, tensor_map=MAP, coords=(ZERO,), mbar=mbar)


COMMIT = ops.Commit(family="wgmma")
WGMMA = ops.Wgmma(reads=((S, Const(32)),))
CLUSTER_ARRIVE = ops.ClusterBarrier(kind="arrive", sem="release")

SAMPLES: tuple[tuple[Op, ...], ...] = (
    (ops.Alu(op="add", type="u32", dsts=(R,), srcs=(ONE, ONE)),),
    (ops.Alu(op="nop", type="b32", dsts=(), srcs=()),),
    (ops.Load(dsts=(R,), address=G, type="u32"),),
    (ops.Load(dsts=(R, R), address=S, type="u32", sem="acquire", scope="gpu"),),
    (ops.Store(address=G, srcs=(ONE,), type="u32"),),
    (ops.Store(address=S, srcs=(ONE,), type="u32", sem="release", scope="gpu"),),
    (ops.Fill(address=S, size=SIZE),),
    (ops.Atomic(dst=R, op="add", address=G, srcs=(ONE,), type="u32"),),
    (ops.Await(inner=ops.Load(dsts=(R,), address=G, type="u32", sem="relaxed", scope="gpu"), compare=("==", ONE)),),
    (ops.Await(inner=ops.MbarrierWait(address=BAR, dst=None, parity=ZERO, blocking=True)),),
    (ops.Fence(sem="sc", scope="gpu"),),
    (ops.GridWait(),),
    (ops.ProxyFence(kind="async"),),
    (ops.ProxyFence(kind="tensormap", half="acquire", scope="gpu", address=MAP, size=MAP_SIZE),),
    (ops.DivergentAligned(code="UB307", reason="a lane is missing"),),
    (ops.Barrier(kind="sync", barrier=ZERO),),
    (ops.Barrier(kind="arrive", barrier=ZERO, count=Const(64)),),
    (ops.Barrier(kind="red", barrier=ZERO, red_op="popc", dst=R, src=ONE),),
    (CLUSTER_ARRIVE,),
    (CLUSTER_ARRIVE, ops.ClusterBarrier(kind="wait", sem="acquire")),
    (ops.WarpSync(mask=MASK),),
    (ops.Collective(op="vote.any", type="pred", dsts=(R, None), srcs=(ONE,), mask=MASK),),
    (ops.MbarrierInit(address=BAR, count=ONE),),
    (ops.MbarrierInval(address=BAR),),
    (ops.MbarrierTx(kind="expect", address=BAR, tx=SIZE),),
    (ops.MbarrierTx(kind="complete", address=BAR, tx=SIZE),),
    (ops.MbarrierArrive(address=BAR, state=R),),
    (ops.MbarrierArrive(address=BAR, drop=True, tx=SIZE),),
    (ops.MbarrierWait(address=BAR, dst=P, parity=ZERO),),
    (ops.MbarrierArrive(address=BAR, state=R, count=ONE, no_complete=True), ops.MbarrierPending(dst=P, state=R)),
    (ops.CpAsync(dst=S, src=G, size=SIZE),),
    (COMMIT,),
    (ops.WaitGroup(family="bulk", pending=ZERO),),
    (WGMMA, COMMIT, ops.WaitGroup(family="wgmma", pending=ZERO)),
    (ops.CpAsyncArrive(address=BAR),),
    (ops.CpAsyncArrive(address=BAR, noinc=True),),
    (bulk(),),
    (bulk("add"),),
    (ops.Prefetch(src=G, size=SIZE),),
    (ops.Prefetch(tensor_map=MAP, coords=(ZERO,)),),
    (tensor("load"),),
    (tensor("store"),),
    (ops.AsyncStore(address=S2, srcs=(ONE,), type="u32", mbar=BAR2),),
    (ops.AsyncStore(address=S2, srcs=(ONE,), type="u32", mbar=BAR2, reduce="add"),),
    (ops.AsyncStore(address=G, srcs=(ONE,), type="u32", sem="release", scope="gpu", space="global"),),
    (ops.TensormapReplace(field_name="rank", address=MAP, value=ONE),),
    (ops.TensormapCopyFence(dst=MAP, src=S, size=MAP_SIZE, scope="gpu"),),
    (WGMMA,),
    (ops.WgmmaFence(),),
    (ops.TensorCore(kind="mma", reads=((S, Const(32)),), writes=((T, Const(32)),)),),
    (ops.TensorCore(kind="alloc", reads=(), writes=((T, Const(32)),)),),
    (ops.TensorMove(family="tcgen05.ld", address=T, size=4),),
    (ops.TensorMove(family="tcgen05.st", address=T, size=4),),
    (ops.TensorCommit(address=BAR),),
)  # fmt: skip
"""Operations of each class, behind what they presuppose: the last of each row is looked at."""


def run(code: tuple[Op, ...]) -> tuple[list[State], tuple[Event, ...]]:
    """The states behind the last operation of some code, which all threads of a CTA execute, and its events."""
    threads = tuple(replace(t, code=code) for t in PROGRAM.threads)
    program = replace(PROGRAM, threads=threads)
    contents = encode(next(i.object.tensor_map[0] for i in PROGRAM.memory.instances if i.object.tensor_map))
    emitter = Emitter(program, threads[0], Semantics(), lambda _uid, _state: (contents,))
    states, last = [emitter.start()], 0
    for op in code:
        state = next(s for s in states if not s.ended)
        last = len(state.events)
        states = emitter.execute(op, state)
    return states, tuple(event for s in states if not s.ended for event in s.events[last:])
