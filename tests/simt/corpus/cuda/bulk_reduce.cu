// Partial histograms in shared memory are added to the global one by a bulk reduction.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int threads = 128;
constexpr int bins = 256;

extern "C" __global__ void __launch_bounds__(threads) bulk_reduce(const uint8_t* source, uint32_t* histogram, int count) {
  __shared__ alignas(16) uint32_t local[bins];
  for (int i = threadIdx.x; i < bins; i += threads) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + threadIdx.x; i < count; i += gridDim.x * threads) atomicAdd(&local[source[i]], 1u);
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, histogram, local, sizeof(local));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
