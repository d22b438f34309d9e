// Every CTA of a cluster fetches its slice of a tile and sends it to all of them; a stage is free when all CTAs say so.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int ctas = 2;
constexpr int stages = 2;
constexpr int threads = 128;
constexpr int floats = 1024;
constexpr int slice = floats / ctas;

struct Memory {
  alignas(128) float tile[stages][floats];
  alignas(8) uint64_t full[stages];
  alignas(8) uint64_t empty[stages];
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ void await(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
}

extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads)
    multicast(const float* source, float* target, int rounds) {
  __shared__ Memory memory;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], ctas);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
  float sum = 0;
  for (int k = 0; k < rounds; ++k) {
    const int s = k % stages;
    const uint32_t parity = (k / stages) & 1;
    if (threadIdx.x == 0) {
      await(&memory.empty[s], parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(memory.tile[s]));
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
              shared_address(&memory.tile[s][rank * slice])),
          "l"(source + (size_t(k) * ctas + rank) * slice), "n"(slice * 4), "r"(shared_address(&memory.full[s])),
          "h"(static_cast<uint16_t>((1 << ctas) - 1))
          : "memory");
    }
    await(&memory.full[s], parity);
    for (int i = threadIdx.x; i < floats; i += threads) sum += memory.tile[s][i];
    asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
    __syncthreads();
    if (threadIdx.x < ctas) {
      asm volatile(
          "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&memory.empty[s])),
          "r"(threadIdx.x)
          : "memory");
    }
  }
  target[blockIdx.x * threads + threadIdx.x] = sum;
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}
