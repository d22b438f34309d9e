// A tensor map is edited in shared memory, written to global memory with a fence of the tensormap proxy, acquired and used.
#include <cuda.h>
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int threads = 32;
constexpr int side = 16;

struct Memory {
  alignas(128) unsigned char map[128];
  alignas(128) float tile[side][side];
  uint64_t full;
};

extern "C" __global__ void __launch_bounds__(threads)
    tensormap_edit(const __grid_constant__ CUtensorMap pattern, unsigned char* maps, const float* source, float* target) {
  __shared__ Memory memory;
  unsigned char* mine = maps + size_t(blockIdx.x) * 128;
  reinterpret_cast<uint32_t*>(memory.map)[threadIdx.x] = reinterpret_cast<const uint32_t*>(&pattern)[threadIdx.x];
  if (threadIdx.x == 0) ptx::mbarrier_init(&memory.full, 1);
  __syncwarp();
  if (threadIdx.x == 0) {
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(memory.map))),
                 "l"(source + size_t(blockIdx.x) * side * side)
                 : "memory");
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(mine),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(memory.map)))
               : "memory");
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
    ptx::fence_proxy_async(ptx::space_shared);
    const int32_t at[2] = {0, 0};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full, sizeof(memory.tile));
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, memory.tile, mine, at, &memory.full);
  }
  while (!ptx::mbarrier_try_wait_parity(&memory.full, 0)) {}
  for (int y = 0; y < side; ++y)
    if (threadIdx.x < side) target[(size_t(blockIdx.x) * side + y) * side + threadIdx.x] = memory.tile[y][threadIdx.x];
}
