// A block-scaled product on sm_100a: bulk copies bring operands and scales, tcgen05 copies the scales, multiplies, and commits the stage.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 2;
constexpr int m = 128, n = 64, k = 128;
constexpr uint32_t scales_a = 64, scales_b = 68;

struct Stage {
  uint8_t a[m * k];
  uint8_t b[n * k];
  uint8_t scale_a[512];
  uint8_t scale_b[512];
};

struct Memory {
  Stage stage[stages];
  uint64_t full[stages];
  uint64_t empty[stages];
  uint64_t done;
  uint32_t tensor;
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// Rows of 128 bytes with the swizzle of 128 bytes, eight of them to a group of 1024; or cores of 8 rows of 16 bytes, one behind the other.
__device__ uint64_t swizzled(uint32_t address) { return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(0x40004040) << 32); }
__device__ uint64_t cores(uint32_t address) { return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(0x00004008) << 32); }

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

extern "C" __global__ void __launch_bounds__(128) scaled_product(const uint8_t* source, float* target, int steps) {
  extern __shared__ __align__(1024) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int warp = threadIdx.x / 32;
  const uint32_t columns = 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], 1);
    }
    ptx::mbarrier_init(&memory.done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  if (warp == 2) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &memory.tensor, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tensor = memory.tensor;
  if (threadIdx.x == 0) {
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.empty[s], ((t / stages) & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(Stage));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &memory.stage[s], source + (size_t(blockIdx.x) * steps + t) * sizeof(Stage),
                         sizeof(Stage), &memory.full[s]);
    }
  } else if (threadIdx.x == 32) {
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.full[s], (t / stages) & 1);
      const Stage& stage = memory.stage[s];
      ptx::tcgen05_cp_32x128b_warpx4(ptx::cta_group_1, tensor + scales_a, cores(shared_address(stage.scale_a)));
      ptx::tcgen05_cp_32x128b_warpx4(ptx::cta_group_1, tensor + scales_b, cores(shared_address(stage.scale_b)));
#pragma unroll
      for (int j = 0; j < k / 32; ++j) {
        const uint32_t shape = (n / 8 << 17) | (m / 128 << 27) | (1 << 23) | (j << 4) | (j << 29);
        ptx::tcgen05_mma_block_scale_vec_1x(ptx::kind_mxf8f6f4, ptx::cta_group_1, tensor, swizzled(shared_address(stage.a) + 32 * j),
                                     swizzled(shared_address(stage.b) + 32 * j), shape, tensor + scales_a, tensor + scales_b, t > 0 || j > 0);
      }
      ptx::tcgen05_commit(ptx::cta_group_1, &memory.empty[s]);
    }
    ptx::tcgen05_commit(ptx::cta_group_1, &memory.done);
  }
  __syncwarp();
  await(&memory.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  for (int half = 0; half < 2; ++half) {
    uint32_t row[n / 2];
    ptx::tcgen05_ld_32x32b(row, tensor + (uint32_t(warp * 32) << 16) + half * n / 2);
    ptx::tcgen05_wait_ld();
    for (int j = 0; j < n / 2; ++j) target[(size_t(blockIdx.x) * n + half * n / 2 + j) * m + threadIdx.x] = __uint_as_float(row[j]);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 2) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, tensor, columns);
  }
}
