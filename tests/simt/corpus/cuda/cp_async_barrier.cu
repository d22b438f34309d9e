// cp.async announced to an mbarrier by the copying threads: half of the block copies, the other half reads.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 2;
constexpr int half = 64;

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ void await(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain: mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(2 * half) cp_async_barrier(const float4* source, float4* target, int rounds) {
  __shared__ alignas(16) float4 tile[stages][half];
  __shared__ uint64_t full[stages], empty[stages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], half);
      ptx::mbarrier_init(&empty[s], half);
    }
  }
  __syncthreads();
  const int lane = threadIdx.x % half;
  const size_t base = size_t(blockIdx.x) * rounds * half;
  if (threadIdx.x < half) {
    for (int k = 0; k < rounds; ++k) {
      const int s = k % stages;
      await(&empty[s], ((k / stages) & 1) ^ 1);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(&tile[s][lane])),
                   "l"(source + base + size_t(k) * half + lane)
                   : "memory");
      asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&full[s])) : "memory");
    }
  } else {
    for (int k = 0; k < rounds; ++k) {
      const int s = k % stages;
      await(&full[s], (k / stages) & 1);
      target[base + size_t(k) * half + lane] = tile[s][half - 1 - lane];
      ptx::mbarrier_arrive(&empty[s]);
    }
  }
}
