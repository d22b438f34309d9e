// A stream of tiles: tensor copies bring one in, the block scales it in place, a tensor copy takes it out again.
#include <cuda.h>
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int width = 64;
constexpr int height = 16;
constexpr int threads = 128;
constexpr int stages = 2;

struct Memory {
  alignas(128) float tile[stages][height][width];
  uint64_t full[stages];
};

extern "C" __global__ void __launch_bounds__(threads)
    tensor_tiles(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out, int tiles) {
  __shared__ Memory memory;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) ptx::mbarrier_init(&memory.full[s], 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  const int first = blockIdx.x;
  const int step = gridDim.x;
  auto fetch = [&](int s, int tile) {
    const int32_t at[2] = {0, tile * height};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(memory.tile[s]));
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &memory.tile[s], &in, at, &memory.full[s]);
  };
  if (threadIdx.x == 0 && first < tiles) fetch(0, first);
  int round = 0;
  for (int tile = first; tile < tiles; tile += step, ++round) {
    const int s = round % stages;
    if (threadIdx.x == 0 && tile + step < tiles) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      fetch(s ^ 1, tile + step);
    }
    while (!ptx::mbarrier_try_wait_parity(&memory.full[s], (round / stages) & 1)) {}
    for (int y = threadIdx.x / width; y < height; y += threads / width) memory.tile[s][y][threadIdx.x % width] *= 3.0f;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      const int32_t at[2] = {0, tile * height};
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, &memory.tile[s]);
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
