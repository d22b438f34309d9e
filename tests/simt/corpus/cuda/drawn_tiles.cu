// Tiles are drawn from a counter: one thread draws and posts the number in a ring of two slots, the block works until none is left.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int workers = 64;
constexpr int slots = 2;

struct Memory {
  int tile[slots];
  uint64_t posted[slots];
  uint64_t taken[slots];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

extern "C" __global__ void __launch_bounds__(workers + 32) drawn_tiles(float* data, int* counter, int tiles) {
  __shared__ Memory memory;
  if (threadIdx.x == 0) {
    for (int s = 0; s < slots; ++s) {
      ptx::mbarrier_init(&memory.posted[s], 1);
      ptx::mbarrier_init(&memory.taken[s], workers);
    }
  }
  __syncthreads();
  if (threadIdx.x >= workers) {
    if (threadIdx.x > workers) return;
    for (int k = 0;; ++k) {
      const int s = k % slots;
      await(&memory.taken[s], ((k / slots) & 1) ^ 1);
      const int tile = atomicAdd(counter, 1);
      memory.tile[s] = tile;
      ptx::mbarrier_arrive(&memory.posted[s]);
      if (tile >= tiles) return;
    }
  }
  for (int k = 0;; ++k) {
    const int s = k % slots;
    await(&memory.posted[s], (k / slots) & 1);
    const int tile = memory.tile[s];
    ptx::mbarrier_arrive(&memory.taken[s]);
    if (tile >= tiles) return;
    data[size_t(tile) * workers + threadIdx.x] += 1.0f;
  }
}
