// A ring across a cluster: a producer warp in each CTA multicasts half of every stage, consumer warps free it in both CTAs.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int ctas = 2;
constexpr int stages = 3;
constexpr int readers = 4;
constexpr int floats = 2048;
constexpr int slice = floats / ctas;

struct Memory {
  alignas(128) float tile[stages][floats];
  uint64_t full[stages];
  uint64_t empty[stages];
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ bool elected() {
  uint32_t chosen;
  asm volatile("{\n.reg .pred leader;\nelect.sync _|leader, 0xffffffff;\nselp.u32 %0, 1, 0, leader;\n}" : "=r"(chosen));
  return chosen != 0;
}

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {}
}

extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(32 * (1 + readers))
    cluster_ring(const float* source, float* sums, int rounds) {
  __shared__ Memory memory;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int warp = threadIdx.x / 32;
  if (warp == 0 && elected()) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], readers * ctas);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
  if (warp == 0) {
    if (elected()) {
      for (int k = 0; k < rounds; ++k) {
        const int s = k % stages;
        await(&memory.empty[s], ((k / stages) & 1) ^ 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(memory.tile[s]));
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                shared_address(&memory.tile[s][rank * slice])),
            "l"(source + (size_t(k) * ctas + rank) * slice), "n"(slice * 4), "r"(shared_address(&memory.full[s])),
            "h"(static_cast<uint16_t>((1 << ctas) - 1))
            : "memory");
      }
    }
  } else {
    const int reader = threadIdx.x - 32;
    float sum = 0;
    for (int k = 0; k < rounds; ++k) {
      const int s = k % stages;
      await(&memory.full[s], (k / stages) & 1);
      for (int i = reader; i < floats; i += 32 * readers) sum += memory.tile[s][i];
      asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
      __syncwarp();
      if (reader % 32 < ctas)
        asm volatile(
            "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&memory.empty[s])),
            "r"(reader % 32)
            : "memory");
    }
    sums[blockIdx.x * 32 * readers + reader] = sum;
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}
