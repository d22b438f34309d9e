// A total over the grid that all CTAs need.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) total_then_scale(int* data, int* sums, int* total, int* count, int* ready) {
  const int own = data[blockIdx.x * 32 + threadIdx.x];
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = own;
    if (add_acq_rel(count, 1) == gridDim.x - 1) {
      int sum = 0;
#pragma unroll 1
      for (int b = 0; b < gridDim.x; ++b) sum += sums[b];
#if TWIN == 1
      store_release(ready, 1);
      *total = sum;
#else
      *total = sum;
      store_release(ready, 1);
#endif
    }
#if TWIN != 2
    while (load_acquire(ready) == 0) {}
#endif
  }
  __syncthreads();
  data[blockIdx.x * 32 + threadIdx.x] = own - *total;
}
