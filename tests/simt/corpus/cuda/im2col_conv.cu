// The input of a convolution, filter position by filter position, by im2col tensor copies into two stages; the next one is prefetched.
#include <cstdint>
#include <cuda.h>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int stages = 2;
constexpr int pixels = 64;
constexpr int channels = 32;
constexpr int readers = 128;

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

extern "C" __global__ void __launch_bounds__(readers + 32)
    im2col_conv(const __grid_constant__ CUtensorMap image, float* sums, int rounds) {
  __shared__ alignas(128) float tile[stages][pixels * channels];
  __shared__ uint64_t full[stages], empty[stages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], readers);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&image) : "memory");
  }
  __syncthreads();
  if (threadIdx.x >= readers) {
    if (threadIdx.x != readers) return;
    for (int k = 0; k < rounds; ++k) {
      const int s = k % stages;
      while (!ptx::mbarrier_try_wait_parity(&empty[s], ((k / stages) & 1) ^ 1)) {}
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], sizeof(tile[s]));
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%2, %3, %3, %4}], [%5], {%6, %7};" ::"r"(shared_address(tile[s])),
          "l"(&image), "r"(0), "r"(-1), "r"(static_cast<int>(blockIdx.x)), "r"(shared_address(&full[s])),
          "h"(static_cast<uint16_t>(k % 3)), "h"(static_cast<uint16_t>(k / 3 % 3))
          : "memory");
      const int next = k + 1;
      if (next < rounds)
        asm volatile(
            "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%0, {%1, %2, %2, %3}], {%4, %5};" ::"l"(&image), "r"(0),
            "r"(-1), "r"(static_cast<int>(blockIdx.x)), "h"(static_cast<uint16_t>(next % 3)),
            "h"(static_cast<uint16_t>(next / 3 % 3))
            : "memory");
    }
    return;
  }
  float sum = 0;
  for (int k = 0; k < rounds; ++k) {
    const int s = k % stages;
    while (!ptx::mbarrier_try_wait_parity(&full[s], (k / stages) & 1)) {}
    for (int i = threadIdx.x; i < pixels * channels; i += readers) sum += tile[s][i];
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive(&empty[s]);
  }
  sums[blockIdx.x * readers + threadIdx.x] = sum;
}
