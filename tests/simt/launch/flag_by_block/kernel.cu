// CTA 0 produces, CTA 1 consumes.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) flag_by_block(int* tile, int* out, int* flag) {
#if TWIN == 1
  const int producer = 1;
#else
  const int producer = 0;
#endif
  if (blockIdx.x == producer) {
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      store_relaxed(flag, 1);
    }
  } else {
    if (threadIdx.x == 0) {
#if TWIN == 2
      while (load_weak(flag) == 0) {}
#else
      while (load_relaxed(flag) == 0) {}
#endif
      __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
  }
}
