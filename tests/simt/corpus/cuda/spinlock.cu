// Critical sections under a lock taken by compare-and-swap.
#include <cuda/atomic>
extern "C" __global__ void __launch_bounds__(64) spinlock(int* lock, int* sums, const int* in) {
  __shared__ int part;
  if (threadIdx.x == 0) part = 0;
  __syncthreads();
  atomicAdd(&part, in[blockIdx.x * 64 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);
    int expected = 0;
    while (!l.compare_exchange_weak(expected, 1, cuda::memory_order_acquire)) expected = 0;
    sums[0] += part;
    sums[1] += 1;
    l.store(0, cuda::memory_order_release);
  }
}
