// A box that one CTA fills and the other empties.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) ping_pong(int* box, int* out, int* full, int* empty, int rounds) {
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    if (blockIdx.x == 0) {
#if TWIN == 2
      if (threadIdx.x == 0)
        while (load_acquire(empty) < k - 1) {}
#else
      if (threadIdx.x == 0)
        while (load_acquire(empty) < k) {}
#endif
      __syncthreads();
      box[threadIdx.x] = k;
      __syncthreads();
      if (threadIdx.x == 0) store_release(full, k + 1);
    } else {
#if TWIN == 3
      if (threadIdx.x == 0)
        while (load_acquire(full) < k + 2) {}
#else
      if (threadIdx.x == 0)
        while (load_acquire(full) < k + 1) {}
#endif
      __syncthreads();
#if TWIN == 1
      if (threadIdx.x == 0) store_release(empty, k + 1);
#endif
      out[k * 32 + threadIdx.x] = box[threadIdx.x];
      __syncthreads();
#if TWIN != 1
      if (threadIdx.x == 0) store_release(empty, k + 1);
#endif
    }
  }
}
