// A ring whose waits give up: they read the clock, and after too long the kernel prints who waited and traps.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int readers = 4;
constexpr int stages = 2;
constexpr int floats = 256;

__device__ __noinline__ void await(uint64_t* barrier, uint32_t parity, int who) {
  const long long start = clock64();
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
    if (clock64() - start > 2000000000LL) {
      printf("thread %d: phase %u does not end\n", who, parity);
      __trap();
    }
  }
}

extern "C" __global__ void __launch_bounds__(32 * (readers + 1)) timed_waits(const float* source, float* sums, int rounds) {
  __shared__ alignas(128) float tile[stages][floats];
  __shared__ uint64_t full[stages], empty[stages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], readers);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x >= 32 * readers) {
    if (threadIdx.x == 32 * readers) {
      for (int k = 0; k < rounds; ++k) {
        const int s = k % stages;
        await(&empty[s], ((k / stages) & 1) ^ 1, threadIdx.x);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], sizeof(tile[s]));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile[s], source + (blockIdx.x * rounds + k) * floats,
                           static_cast<uint32_t>(sizeof(tile[s])), &full[s]);
      }
    }
    return;
  }
  float sum = 0;
  for (int k = 0; k < rounds; ++k) {
    const int s = k % stages;
    await(&full[s], (k / stages) & 1, threadIdx.x);
    for (int i = threadIdx.x; i < floats; i += 32 * readers) sum += tile[s][i];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
  }
  sums[blockIdx.x * 32 * readers + threadIdx.x] = sum;
}
