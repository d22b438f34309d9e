// Two barriers over the grid with one counter.
#include "../ptx.cuh"

__device__ __forceinline__ void barrier(int* count, int* generation) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const int before = load_relaxed(generation);
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
#if TWIN != 2
      __threadfence();
#endif
#if TWIN == 1
      store_release(generation, before + 1);
      store_relaxed(count, 0);
#else
      store_relaxed(count, 0);
      store_release(generation, before + 1);
#endif
    } else {
      while (load_acquire(generation) == before) {}
    }
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(32) grid_barrier_sense(int* data, int* count, int* generation) {
  const int own = blockIdx.x * 32 + threadIdx.x, next = (blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x;
  data[own] = blockIdx.x;
  barrier(count, generation);
  const int value = data[next];
  barrier(count, generation);
  data[own] = value;
}
