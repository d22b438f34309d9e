// A flag that the kernel before has set.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) first(int* x, int* flag) {
  x[threadIdx.x] = threadIdx.x;
#if TWIN != 1
  if (threadIdx.x == 0) store_relaxed(flag, 1);
#endif
}

extern "C" __global__ void __launch_bounds__(32) second(const int* x, int* y, int* flag) {
#if TWIN == 2
  if (threadIdx.x == 0) {
    store_relaxed(flag, 0);
    while (load_acquire(flag) == 0) {}
  }
#else
  if (threadIdx.x == 0)
    while (load_acquire(flag) == 0) {}
#endif
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}
