// A sparse product on sm_100a: tcgen05 copies the metadata, two products share A in the collector, and one commit frees the stage.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 2;
constexpr int m = 128, n = 64, k = 32;
constexpr uint32_t metadata = 128;

struct Stage {
  uint16_t a[m * k / 2];
  uint16_t b[2][n * k];
  uint32_t metadata[m * 4];
};

struct Memory {
  Stage stage[stages];
  uint64_t full[stages];
  uint64_t empty[stages];
  uint64_t done;
  uint32_t tensor;
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// Cores of 8 rows of 16 bytes; `rows` of them lie one below the other before those of the next 16 bytes.
__device__ uint64_t cores(uint32_t address, uint32_t rows) {
  return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(rows * 8) << 16) | (uint64_t(0x00004008) << 32);
}

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

template <int half> __device__ void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t meta, uint32_t shape, bool accumulate) {
  if constexpr (half == 0) {
    asm volatile(
        "{.reg .pred p; setp.ne.u32 p, %5, 0; tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::fill [%0], %1, %2, [%3], %4, p;}" ::"r"(d),
        "l"(a), "l"(b), "r"(meta), "r"(shape), "r"(uint32_t(accumulate))
        : "memory");
  } else {
    asm volatile(
        "{.reg .pred p; setp.ne.u32 p, %5, 0; tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::lastuse [%0], %1, %2, [%3], %4, p;}" ::"r"(d),
        "l"(a), "l"(b), "r"(meta), "r"(shape), "r"(uint32_t(accumulate))
        : "memory");
  }
}

extern "C" __global__ void __launch_bounds__(128) sparse_product(const unsigned char* source, float* target, int steps) {
  extern __shared__ __align__(1024) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int warp = threadIdx.x / 32;
  const uint32_t columns = 256;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.full[s], 1);
      ptx::mbarrier_init(&memory.empty[s], 1);
    }
    ptx::mbarrier_init(&memory.done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &memory.tensor, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tensor = memory.tensor;
  if (threadIdx.x == 64) {
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.empty[s], ((t / stages) & 1) ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full[s], sizeof(Stage));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &memory.stage[s], source + (size_t(blockIdx.x) * steps + t) * sizeof(Stage),
                         sizeof(Stage), &memory.full[s]);
    }
  } else if (threadIdx.x == 96) {
    const uint32_t shape = (n / 8 << 17) | (m / 16 << 24) | (1 << 4) | (1 << 2);
    for (int t = 0; t < steps; ++t) {
      const int s = t % stages;
      await(&memory.full[s], (t / stages) & 1);
      const Stage& stage = memory.stage[s];
      ptx::tcgen05_cp_128x128b(ptx::cta_group_1, tensor + metadata, cores(shared_address(stage.metadata), m / 8));
      const uint64_t a = cores(shared_address(stage.a), m / 8);
      multiply<0>(tensor, a, cores(shared_address(stage.b[0]), n / 8), tensor + metadata, shape, t > 0);
      multiply<1>(tensor + n, a, cores(shared_address(stage.b[1]), n / 8), tensor + metadata, shape, t > 0);
      ptx::tcgen05_commit(ptx::cta_group_1, &memory.empty[s]);
    }
    ptx::tcgen05_commit(ptx::cta_group_1, &memory.done);
  }
  __syncwarp();
  await(&memory.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  for (int half = 0; half < 2; ++half) {
    uint32_t row[n];
    ptx::tcgen05_ld_32x32b(row, tensor + (uint32_t(warp * 32) << 16) + half * n);
    ptx::tcgen05_wait_ld();
    for (int j = 0; j < n; ++j) target[(size_t(blockIdx.x) * 2 * n + half * n + j) * m + threadIdx.x] = __uint_as_float(row[j]);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, tensor, columns);
  }
}
