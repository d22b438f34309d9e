"""A stream of tiles in CuTe DSL: tensor copies into a ring, warps that scale, tensor copies out of two buffers."""

from __future__ import annotations

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_fake_compact_tensor

ROWS, COLUMNS, STAGES, READERS = 64, 32, 3, 4
TILE = (ROWS, COLUMNS)


class Scaled:
    """A warp loads, four scale, and the first of these stores what they have made, two tiles in turn."""

    @cute.jit
    def __call__(self, source: cute.Tensor, target: cute.Tensor, factor: cutlass.Float32):
        rows = cute.make_layout(TILE, stride=(COLUMNS, 1))
        load, from_source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, rows, TILE)
        store, to_target = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), target, rows, TILE)
        self.kernel(load, from_source, store, to_target, factor).launch(
            grid=[source.shape[1] // COLUMNS, 1, 1], block=[32 * (READERS + 1), 1, 1]
        )

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        source: cute.Tensor,
        store: cute.CopyAtom,
        target: cute.Tensor,
        factor: cutlass.Float32,
    ):
        @cute.struct
        class Memory:
            bars: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
            inbox: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, ROWS * COLUMNS * STAGES], 128]
            outbox: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, ROWS * COLUMNS * 2], 128]

        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        memory = utils.SmemAllocator().allocate(Memory)
        inbox = memory.inbox.get_tensor(cute.make_layout((*TILE, STAGES), stride=(COLUMNS, 1, ROWS * COLUMNS)))
        outbox = memory.outbox.get_tensor(cute.make_layout((*TILE, 2), stride=(COLUMNS, 1, ROWS * COLUMNS)))
        ring = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, READERS),
            tx_count=ROWS * COLUMNS * 4,
            barrier_storage=memory.bars.data_ptr(),
        )
        sources = cute.local_tile(source, TILE, (None, block))
        targets = cute.local_tile(target, TILE, (None, block))
        one = cute.make_layout(1)
        into, come = cpasync.tma_partition(load, 0, one, cute.group_modes(inbox, 0, 2), cute.group_modes(sources, 0, 2))
        out, gone = cpasync.tma_partition(
            store, 0, one, cute.group_modes(outbox, 0, 2), cute.group_modes(targets, 0, 2)
        )
        rounds = cute.size(sources, mode=[2])
        if warp == READERS:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for k in cutlass.range(rounds, unroll=1):
                ring.producer_acquire(state)
                cute.copy(load, come[None, k], into[None, state.index], tma_bar_ptr=ring.producer_get_barrier(state))
                ring.producer_commit(state)
                state.advance()
            ring.producer_tail(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            stores = pipeline.PipelineTmaStore.create(
                num_stages=2, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * READERS)
            )
            meet = pipeline.NamedBarrier(barrier_id=1, num_threads=32 * READERS)
            for k in cutlass.range(rounds, unroll=1):
                if warp == 0:
                    stores.producer_acquire()
                meet.arrive_and_wait()
                ring.consumer_wait(state)
                for i in cutlass.range(ROWS * COLUMNS // (32 * READERS), unroll=4):
                    at = i * 32 * READERS + thread
                    x, y = at % COLUMNS, at // COLUMNS
                    outbox[y, x, k % 2] = inbox[y, x, state.index] * factor
                cute.arch.fence_view_async_shared()
                cute.arch.sync_warp()
                ring.consumer_release(state)
                meet.arrive_and_wait()
                if warp == 0:
                    cute.copy(store, out[None, k % 2], gone[None, k])
                    stores.producer_commit()
                state.advance()
            if warp == 0:
                stores.producer_tail()


def scaled(rows, columns):
    tensor = make_fake_compact_tensor(cutlass.Float32, (rows, columns), stride_order=(1, 0), assumed_align=16)
    cute.compile(Scaled(), tensor, tensor, cutlass.Float32(2.0))
