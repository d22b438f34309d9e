// CTAs of a cluster pass a running sum on through global memory: a flag is released with the sum and acquired before it.
#include <cuda/atomic>

constexpr int threads = 32;

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(threads) flag_chain(const int* source, int* sums, int* flags) {
  int value = source[blockIdx.x * threads + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x == 0) {
    int before = 0;
    if (blockIdx.x > 0) {
      cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x - 1]);
      while (flag.load(cuda::memory_order_acquire) == 0) {}
      before = sums[blockIdx.x - 1];
    }
    sums[blockIdx.x] = before + value;
    cuda::atomic_ref<int, cuda::thread_scope_device>(flags[blockIdx.x]).store(1, cuda::memory_order_release);
  }
}
