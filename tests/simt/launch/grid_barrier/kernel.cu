// One barrier over the grid.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(64) grid_barrier(int* data, int* out, int* count) {
  data[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN != 2
    __threadfence();
#endif
    atomicAdd(count, 1);
#if TWIN == 1
    const int all = gridDim.x - 1;
#elif TWIN == 3
    const int all = gridDim.x + 1;
#else
    const int all = gridDim.x;
#endif
    while (load_acquire(count) < all) {}
  }
#if TWIN != 4
  __syncthreads();
#endif
  out[blockIdx.x * 64 + threadIdx.x] = data[(blockIdx.x + 1) % gridDim.x * 64 + threadIdx.x];
}
