// A warp-specialised product: a producer warp loads by tensor copies, two warpgroups multiply, the result leaves by a tensor copy.
#include <cuda.h>
#include <cuda/ptx>
#include <cuda_fp16.h>
#include "wgmma.cuh"

namespace ptx = cuda::ptx;

constexpr int stages = 4;
constexpr int groups = 2;
constexpr int side = 64;

struct Memory {
  alignas(1024) __half a[stages][groups][side * side];
  alignas(1024) __half b[stages][side * side];
  alignas(1024) float c[groups][side * side];
  uint64_t full[stages];
  uint64_t empty[stages];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

__device__ void load(void* target, const CUtensorMap* map, int32_t x, int32_t y, uint64_t* barrier) {
  const int32_t at[2] = {x, y};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, target, map, at, barrier);
}

extern "C" __global__ void __launch_bounds__(128 * (groups + 1))
    wgmma_ring(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int k_tiles) {
  extern __shared__ __align__(1024) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], groups);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const int row = blockIdx.y * groups * side;
  const int column = blockIdx.x * side;
  if (group == groups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 128 * groups) {
      for (int t = 0; t < k_tiles; ++t) {
        const int s = t % stages;
        await(&memory.empty[s], ((t / stages) & 1) ^ 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s],
                                       sizeof(memory.a[s]) + sizeof(memory.b[s]));
        for (int g = 0; g < groups; ++g) load(memory.a[s][g], &a, t * side, row + g * side, &memory.full[s]);
        load(memory.b[s], &b, column, t * side, &memory.full[s]);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int lane = threadIdx.x % 128;
    float sum[32] = {};
    for (int t = 0; t < k_tiles; ++t) {
      const int s = t % stages;
      await(&memory.full[s], (t / stages) & 1);
      wgmma_fence();
      for (int k = 0; k < side / 16; ++k)
        wgmma_64x64x16(sum, descriptor(shared_address(memory.a[s][group]) + k * 32), descriptor(shared_address(memory.b[s]) + k * 16 * 128));
      wgmma_commit();
      wgmma_wait<0>();
      if (lane == 0) ptx::mbarrier_arrive(&memory.empty[s]);
    }
    float* mine = memory.c[group];
    const int r = lane / 32 * 16 + lane % 32 / 4;
    for (int j = 0; j < 8; ++j) {
      const int x = j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&mine[r * side + x]) = make_float2(sum[4 * j], sum[4 * j + 1]);
      *reinterpret_cast<float2*>(&mine[(r + 8) * side + x]) = make_float2(sum[4 * j + 2], sum[4 * j + 3]);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    if (lane == 0) {
      const int32_t at[2] = {column, row + group * side};
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c, at, mine);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
  }
}
