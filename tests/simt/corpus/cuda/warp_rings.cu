// A ring to each warp: its first lane fetches two tiles ahead, the warp reads them and meets before the next.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int warps = 4;
constexpr int stages = 2;
constexpr int floats = 256;

struct Memory {
  alignas(128) float tile[warps][stages][floats];
  uint64_t full[warps][stages];
};

__device__ void fetch(Memory& memory, int warp, int s, const float* source) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[warp][s], floats * 4);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory.tile[warp][s], source, floats * 4, &memory.full[warp][s]);
}

extern "C" __global__ void __launch_bounds__(32 * warps) warp_rings(const float* source, float* target, int rounds) {
  extern __shared__ __align__(128) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  source += (size_t(blockIdx.x) * warps + warp) * rounds * floats;
  if (lane == 0) {
    for (int s = 0; s < stages; ++s) ptx::mbarrier_init(&memory.full[warp][s], 1);
    ptx::fence_proxy_async(ptx::space_shared);
    for (int s = 0; s < stages && s < rounds; ++s) fetch(memory, warp, s, source + s * floats);
  }
  __syncwarp();
  float sum = 0;
  for (int k = 0; k < rounds; ++k) {
    const int s = k % stages;
    while (!ptx::mbarrier_try_wait_parity(&memory.full[warp][s], (k / stages) & 1)) {}
    for (int i = lane; i < floats; i += 32) sum += memory.tile[warp][s][i];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (lane == 0 && k + stages < rounds) fetch(memory, warp, s, source + size_t(k + stages) * floats);
  }
  target[(size_t(blockIdx.x) * warps + warp) * 32 + lane] = sum;
}
