// Tiles travel round a cluster of four: a CTA sends by bulk copies into two slots of its right neighbour, which gives them back.
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int ctas = 4;
constexpr int threads = 64;
constexpr int slots = 2;
constexpr int ints = 256;

struct Memory {
  alignas(128) int mine[ints];
  alignas(128) int slot[slots][ints];
  uint64_t full[slots];
  uint64_t credit[slots];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {}
}

extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads) peer_credits(const int* source, int* target, int rounds) {
  __shared__ Memory memory;
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  const unsigned right = (rank + 1) % ctas;
  const unsigned left = (rank + ctas - 1) % ctas;
  if (threadIdx.x == 0) {
    for (int s = 0; s < slots; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.credit[s], threads);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  const int base = (blockIdx.x / ctas * ctas + rank) * ints;
  for (int i = threadIdx.x; i < ints; i += threads) memory.mine[i] = source[base + i];
  cluster.sync();
  Memory* there = cluster.map_shared_rank(&memory, right);
  Memory* behind = cluster.map_shared_rank(&memory, left);
  for (int k = 0; k < rounds; ++k) {
    const int s = k % slots;
    const uint32_t phase = (k / slots) & 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(memory.mine));
      await(&memory.credit[s], phase ^ 1);
      asm volatile("fence.proxy.async;" ::: "memory");
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there->slot[s], memory.mine, sizeof(memory.mine), &there->full[s]);
    }
    await(&memory.full[s], phase);
    int taken[ints / threads];
    for (int i = 0; i < ints / threads; ++i) taken[i] = memory.slot[s][threadIdx.x + i * threads];
    // The left neighbour may send again, and the copy out of mine must be over before mine is changed: its mbarrier is at the right.
    asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, &behind->credit[s]);
    await(&memory.credit[s], phase);
    for (int i = 0; i < ints / threads; ++i) memory.mine[threadIdx.x + i * threads] += taken[i];
  }
  for (int i = threadIdx.x; i < ints; i += threads) target[base + i] = memory.mine[i];
  cluster.sync();
}
