// Double-buffered bulk stores: the block computes a tile, one thread sends it, and waits for the reads of the last but one.
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int threads = 256;

extern "C" __global__ void __launch_bounds__(threads) bulk_store(const float* source, float* target, int rounds) {
  __shared__ alignas(128) float tile[2][threads];
  const size_t base = size_t(blockIdx.x) * rounds * threads;
  for (int k = 0; k < rounds; ++k) {
    float* mine = tile[k & 1];
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    __syncthreads();
    mine[threadIdx.x] = 2.0f * source[base + size_t(k) * threads + threadIdx.x];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, target + base + size_t(k) * threads, mine, sizeof(tile[0]));
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
