// Tiles of partial sums are added to a matrix by tensor reductions; the source is reused once it has been read.
#include <cuda.h>
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int width = 32;
constexpr int height = 8;
constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) tensor_reduce(const __grid_constant__ CUtensorMap sums, const float* source, int tiles) {
  __shared__ alignas(128) float tile[height * width];
  for (int t = 0; t < tiles; ++t) {
    for (int i = threadIdx.x; i < height * width; i += threads) tile[i] = source[size_t(t) * height * width + i];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      const int32_t at[2] = {0, t * height};
      ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &sums, at, tile);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}
