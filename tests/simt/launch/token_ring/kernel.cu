// A token goes round.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(64) token_ring(int* data, int* token, int rounds) {
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    const int mine = k * gridDim.x + blockIdx.x;
#if TWIN == 1
    if (threadIdx.x == 0)
      while (load_acquire_cta(token) != mine) {}
#else
    if (threadIdx.x == 0)
      while (load_acquire(token) != mine) {}
#endif
    __syncthreads();
    data[threadIdx.x] += mine;
#if TWIN != 2
    __syncthreads();
#endif
#if TWIN == 3
    if (threadIdx.x == 0) store_release(token, blockIdx.x + 1);
#else
    if (threadIdx.x == 0) store_release(token, mine + 1);
#endif
  }
}
