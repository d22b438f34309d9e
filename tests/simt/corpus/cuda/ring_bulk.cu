// A full/empty ring: one elected thread of warp 0 fills the stages by bulk copies, four warps add them up.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 4;
constexpr int floats = 512;
constexpr int readers = 4;

struct Memory {
  alignas(128) float tile[stages][floats];
  alignas(8) uint64_t full[stages];
  alignas(8) uint64_t empty[stages];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

extern "C" __global__ void __launch_bounds__(32 + 32 * readers) ring_bulk(const float* source, float* sums, int rounds) {
  __shared__ Memory memory;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], 32 * readers);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (warp == 0) {
    if (threadIdx.x == 0) {
      for (int k = 0; k < rounds; ++k) {
        const int s = k % stages;
        await(&memory.empty[s], ((k / stages) & 1) ^ 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(memory.tile[s]));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory.tile[s], source + (size_t(blockIdx.x) * rounds + k) * floats,
                           sizeof(memory.tile[s]), &memory.full[s]);
      }
    }
  } else {
    const int reader = threadIdx.x - 32;
    float sum = 0;
    for (int k = 0; k < rounds; ++k) {
      const int s = k % stages;
      await(&memory.full[s], (k / stages) & 1);
      for (int i = reader; i < floats; i += 32 * readers) sum += memory.tile[s][i];
      ptx::fence_proxy_async(ptx::space_shared);
      ptx::mbarrier_arrive(&memory.empty[s]);
    }
    sums[blockIdx.x * 32 * readers + reader] = sum;
  }
}
