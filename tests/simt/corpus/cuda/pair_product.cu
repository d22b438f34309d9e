// A product of two CTAs on sm_100a: each loads its halves of the operands, the leader multiplies both, a multicast commit frees the stage in both.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 2;
constexpr int m = 256, n = 64, k = 64;

struct Stage {
  uint16_t a[m / 2 * k];
  uint16_t b[n / 2 * k];
};

struct Memory {
  Stage stage[stages];
  uint64_t full[stages];   // of a CTA: its halves are here
  uint64_t ready[stages];  // of the leader: those of both CTAs are
  uint64_t empty[stages];
  uint64_t done;
  uint32_t tensor;
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ uint64_t swizzled(uint32_t address) { return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(0x40004040) << 32); }

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {}
}

__device__ void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, bool accumulate) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(d), "l"(a), "l"(b),
               "r"(shape), "r"(uint32_t(accumulate))
               : "memory");
}

__device__ void meet_cluster() {
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128) pair_product(const unsigned char* source, float* target, int steps) {
  extern __shared__ __align__(1024) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int warp = threadIdx.x / 32;
  const uint32_t rank = blockIdx.x & 1;
  const uint32_t columns = 64;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.ready[s], 2);
      ptx::mbarrier_init(&memory.empty[s], 1);
    }
    ptx::mbarrier_init(&memory.done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  if (warp == 3) {
    ptx::tcgen05_alloc(ptx::cta_group_2, &memory.tensor, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_2);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  meet_cluster();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tensor = memory.tensor;
  if (threadIdx.x == 0) {
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.empty[s], ((t / stages) & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(Stage));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &memory.stage[s], source + (size_t(blockIdx.x) * steps + t) * sizeof(Stage),
                         sizeof(Stage), &memory.full[s]);
    }
  } else if (threadIdx.x == 32) {
    uint32_t leader;
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(leader) : "r"(shared_address(memory.ready)));
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.full[s], (t / stages) & 1);
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(leader + 8 * s) : "memory");
    }
  } else if (threadIdx.x == 64 && rank == 0) {
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.ready[s], (t / stages) & 1);
#pragma unroll
      for (int j = 0; j < k / 16; ++j) {
        const uint32_t shape = (n / 8 << 17) | (m / 16 << 24) | (1 << 4);
        multiply(tensor, swizzled(shared_address(memory.stage[s].a) + 32 * j), swizzled(shared_address(memory.stage[s].b) + 32 * j), shape,
                 t > 0 || j > 0);
      }
      ptx::tcgen05_commit_multicast(ptx::cta_group_2, &memory.empty[s], 3);
    }
    ptx::tcgen05_commit_multicast(ptx::cta_group_2, &memory.done, 3);
  }
  __syncwarp();
  await(&memory.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  uint32_t row[n];
  ptx::tcgen05_ld_32x32b(row, tensor + (uint32_t(warp * 32) << 16));
  ptx::tcgen05_wait_ld();
  for (int j = 0; j < n; ++j) target[(size_t(blockIdx.x) * n + j) * (m / 2) + threadIdx.x] = __uint_as_float(row[j]);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  meet_cluster();
  if (warp == 3) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_2, tensor, columns);
  }
}
