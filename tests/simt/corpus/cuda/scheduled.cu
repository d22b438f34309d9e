// Two groups of warps take turns at one scratch tile, by named barriers that hand the turn over; the operands come by a ring.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int group = 64;
constexpr int floats = 256;
constexpr int stages = 2;

struct Memory {
  alignas(128) float tile[stages][floats];
  float scratch[group];
  uint64_t full[stages];
  uint64_t empty[stages];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}
__device__ void take_turn(int mine) { asm volatile("bar.sync %0, 128;" ::"r"(mine + 2) : "memory"); }
__device__ void give_turn(int other) { asm volatile("bar.arrive %0, 128;" ::"r"(other + 2) : "memory"); }

extern "C" __global__ void __launch_bounds__(2 * group + 32) scheduled(const float* source, float* target, int tiles) {
  __shared__ Memory memory;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], group);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const int who = threadIdx.x / group;
  const int lane = threadIdx.x % group;
  if (who == 2) {
    if (lane != 0) return;
    for (int t = 0; t < 2 * tiles; ++t) {
      const int s = t % stages;
      await(&memory.empty[s], ((t / stages) & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], floats * 4);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory.tile[s], source + size_t(t) * floats, floats * 4, &memory.full[s]);
    }
    return;
  }
  if (who == 1) give_turn(0);
  for (int t = 0; t < tiles; ++t) {
    // Group g has the tiles 2t + g, which are always in stage g.
    await(&memory.full[who], t & 1);
    float sum = 0;
    for (int i = lane; i < floats; i += group) sum += memory.tile[who][i];
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive(&memory.empty[who]);
    take_turn(who);
    memory.scratch[lane] = sum;
    asm volatile("bar.sync %0, 64;" ::"r"(who + 4) : "memory");
    sum = memory.scratch[group - 1 - lane];
    if (who == 0 || t + 1 < tiles) give_turn(who ^ 1);
    target[size_t(2 * t + who) * group + lane] = sum;
  }
}
