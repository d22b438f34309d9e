// A barrier of two GPUs, twice: all CTAs count up one word and wait until all have.
#include "../ptx.cuh"

__device__ __forceinline__ void meet(int* count, int goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN == 1
    add_relaxed_sys(count, 1);
#else
    add_release_sys(count, 1);
#endif
#if TWIN == 2
    while (load_acquire_sys(count) < goal - 1) {}
#else
    while (load_acquire_sys(count) < goal) {}
#endif
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(32) exchange(int* words, int* out, int* count, int rank) {
  words[32 * rank + threadIdx.x] = rank;
  meet(count, 2);
  out[threadIdx.x] = words[32 * (1 - rank) + threadIdx.x];
  meet(count, 4);
  words[32 * rank + threadIdx.x] = -1;
}
