// Many producers, one consumer.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) queue(int* items, int* out, int* full, int* tail) {
  if (blockIdx.x > 0) {
    __shared__ int drawn;
    if (threadIdx.x == 0) drawn = atomicAdd(tail, 1);
    __syncthreads();
    const int slot = drawn;
#if TWIN == 1
    if (threadIdx.x == 0) store_release(full + slot, 1);
    __syncthreads();
    items[slot * 32 + threadIdx.x] = blockIdx.x;
#else
    items[slot * 32 + threadIdx.x] = blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) store_release(full + slot, 1);
#endif
    return;
  }
#pragma unroll 1
  for (int slot = 0; slot + 1 < gridDim.x; ++slot) {
#if TWIN == 2
    if (threadIdx.x == 0)
      while (load_acquire(tail) <= slot) {}
#else
    if (threadIdx.x == 0)
      while (load_acquire(full + slot) == 0) {}
#endif
    __syncthreads();
    out[slot * 32 + threadIdx.x] = items[slot * 32 + threadIdx.x];
  }
}
