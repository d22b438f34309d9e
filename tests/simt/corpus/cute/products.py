"""A product of two SMs in CuTe DSL: a warp loads by multicast tensor copies, one issues the products, four store."""

from __future__ import annotations

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import blackwell_helpers as sm100

HALF, FULL = cutlass.Float16, cutlass.Float32
TILE, STAGES, CLUSTER = (256, 128, 64), 3, (2, 1, 1)
LOADS, MULTIPLIES, THREADS = 4, 5, 192
PARTS = 4


class Pair:
    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        mma = cute.make_tiled_mma(
            tcgen05.MmaF16BF16Op(
                HALF,
                FULL,
                (*TILE[:2], 16),
                tcgen05.CtaGroup.TWO,
                tcgen05.OperandSource.SMEM,
                tcgen05.OperandMajorMode.K,
                tcgen05.OperandMajorMode.K,
            )
        )
        in_a = sm100.make_smem_layout_a(mma, TILE, HALF, STAGES)
        in_b = sm100.make_smem_layout_b(mma, TILE, HALF, STAGES)
        ctas = cute.tiled_divide(cute.make_layout(CLUSTER), (mma.thr_id,))
        copy = cpasync.CopyBulkTensorTileG2SMulticastOp(tcgen05.CtaGroup.TWO)
        stage_a, stage_b = cute.select(in_a, mode=[0, 1, 2]), cute.select(in_b, mode=[0, 1, 2])
        load_a, from_a = cute.nvgpu.make_tiled_tma_atom_A(copy, a, stage_a, TILE, mma, ctas.shape)
        load_b, from_b = cute.nvgpu.make_tiled_tma_atom_B(copy, b, stage_b, TILE, mma, ctas.shape)
        self.kernel(mma, load_a, from_a, load_b, from_b, c, in_a, in_b, ctas).launch(
            grid=[2 * (c.shape[0] // TILE[0]), c.shape[1] // TILE[1], 1], block=[THREADS, 1, 1], cluster=CLUSTER
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        load_a: cute.CopyAtom,
        a: cute.Tensor,
        load_b: cute.CopyAtom,
        b: cute.Tensor,
        c: cute.Tensor,
        in_a: cute.ComposedLayout,
        in_b: cute.ComposedLayout,
        ctas: cute.Layout,
    ):
        @cute.struct
        class Memory:
            ring: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
            done: cute.struct.MemRange[cutlass.Int64, 2]
            freed: cutlass.Int64
            columns: cutlass.Int32

        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        place = ctas.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        half, tile = x % 2, (x // 2, y, None)
        smem = utils.SmemAllocator()
        memory = smem.allocate(Memory)
        at_a = smem.allocate_tensor(HALF, in_a.outer, 1024, in_a.inner)
        at_b = smem.allocate_tensor(HALF, in_b.outer, 1024, in_b.inner)
        tensor_memory = utils.TmemAllocator(
            memory.columns.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS),
            allocator_warp_id=0,
            is_two_cta=True,
            two_cta_tmem_dealloc_mbar_ptr=memory.freed.ptr,
        )
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        sizes = [cute.size_in_bytes(HALF, cute.select(layout, mode=[0, 1, 2])) for layout in (in_a, in_b)]
        loads, feeds = pipeline.PipelineTmaUmma.create(
            num_stages=STAGES,
            producer_group=one,
            consumer_group=one,
            tx_count=2 * sum(sizes),
            barrier_storage=memory.ring.data_ptr(),
            cta_layout_vmnk=ctas,
        ).make_participants()
        fills, drains = pipeline.PipelineUmmaAsync.create(
            num_stages=1,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2 * 128),
            barrier_storage=memory.done.data_ptr(),
            cta_layout_vmnk=ctas,
        ).make_participants()
        mine = mma.get_slice(half)
        tiles_a = cute.local_tile(a, TILE, tile, proj=(1, None, 1))
        tiles_b = cute.local_tile(b, TILE, tile, proj=(None, 1, 1))
        into_a, come_a = cpasync.tma_partition(
            load_a,
            place[2],
            cute.make_layout(cute.size(ctas, mode=[2])),
            cute.group_modes(at_a, 0, 3),
            cute.group_modes(mine.partition_A(tiles_a), 0, 3),
        )
        into_b, come_b = cpasync.tma_partition(
            load_b,
            place[1],
            cute.make_layout(cute.size(ctas, mode=[1])),
            cute.group_modes(at_b, 0, 3),
            cute.group_modes(mine.partition_B(tiles_b), 0, 3),
        )
        to_a = cpasync.create_tma_multicast_mask(ctas, place, mcast_mode=2)
        to_b = cpasync.create_tma_multicast_mask(ctas, place, mcast_mode=1)
        of_a, of_b = mma.make_fragment_A(at_a), mma.make_fragment_B(at_b)
        sums = mma.make_fragment_C(mma.partition_shape_C(TILE[:2]))
        tensor_memory.allocate(TILE[1])
        tensor_memory.wait_for_alloc()
        sums = cute.make_tensor(tensor_memory.retrieve_ptr(FULL), sums.layout)
        rounds = cute.size(tiles_a, mode=[2])
        if warp == LOADS:
            for _ in cutlass.range(rounds, unroll=1):
                slot = loads.acquire_and_advance()
                cute.copy(
                    load_a,
                    come_a[None, slot.count],
                    into_a[None, slot.index],
                    tma_bar_ptr=slot.barrier,
                    mcast_mask=to_a,
                )
                cute.copy(
                    load_b,
                    come_b[None, slot.count],
                    into_b[None, slot.index],
                    tma_bar_ptr=slot.barrier,
                    mcast_mask=to_b,
                )
            loads.tail()
        elif warp == MULTIPLIES:
            if half == 0:
                fills.acquire()
                for _ in cutlass.range(rounds, unroll=1):
                    slot = feeds.wait_and_advance()
                    for j in cutlass.range_constexpr(cute.size(of_a, mode=[2])):
                        at = (None, None, j, slot.index)
                        cute.gemm(mma, sums, of_a[at], of_b[at], sums)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    slot.release()
                fills.commit()
                fills.advance()
                fills.tail()
        else:
            part = ((cute.size(sums, mode=[0, 0]), cute.size(sums, mode=[0, 1]) // PARTS),)
            parts = cute.zipped_divide(sums, part)
            outs = cute.zipped_divide(mine.partition_C(cute.local_tile(c, TILE, tile, proj=(1, 1, None))), part)
            atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), FULL)
            reading = tcgen05.make_tmem_copy(atom, parts[None, 0])
            source = reading.get_slice(thread).partition_S(parts)
            target = reading.get_slice(thread).partition_D(outs)
            full = cute.make_rmem_tensor(target[None, None, 0].shape, FULL)
            less = cute.make_rmem_tensor(target[None, None, 0].shape, HALF)
            ready = drains.wait_and_advance()
            for i in cutlass.range(PARTS):
                cute.copy(reading, source[None, None, i], full)
                cute.arch.fence_view_async_tmem_load()
                less.store(full.load().to(HALF))
                cute.autovec_copy(less, target[None, None, i])
            ready.release()
        tensor_memory.relinquish_alloc_permit()
        cute.arch.barrier(barrier_id=2, number_of_threads=THREADS)
        tensor_memory.free(tensor_memory.retrieve_ptr(FULL))


def pair(m, n, k):
    def tensor(rows, columns):
        return make_fake_compact_tensor(HALF, (rows, columns), stride_order=(1, 0), assumed_align=16)

    cute.compile(Pair(), tensor(m, k), tensor(n, k), tensor(m, n))
