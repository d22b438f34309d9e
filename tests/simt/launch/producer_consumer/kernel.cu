// One CTA produces, the others consume.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(64) producer_consumer(int* tile, int* out, int* flag, int* ticket) {
  __shared__ int drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
  __syncthreads();
#if TWIN == 2
  const bool produces = drawn == gridDim.x - 1;
#else
  const bool produces = drawn == 0;
#endif
  if (produces) {
#if TWIN == 1
    if (threadIdx.x == 0) store_release(flag, 1);
    __syncthreads();
    tile[threadIdx.x] = threadIdx.x;
#else
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
#if TWIN == 3
    if (threadIdx.x == 0) store_release_cta(flag, 1);
#else
    if (threadIdx.x == 0) store_release(flag, 1);
#endif
#endif
  } else {
    if (threadIdx.x == 0)
      while (load_acquire(flag) == 0) {}
    __syncthreads();
    out[drawn * 64 + threadIdx.x] = tile[threadIdx.x];
  }
}
