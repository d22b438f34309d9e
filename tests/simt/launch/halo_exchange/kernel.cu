// Rounds with a neighbour's row, and two buffers in turn.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) halo_exchange(int* rows, int* out, int* done, int rounds) {
  const int left = (blockIdx.x + gridDim.x - 1) % gridDim.x, right = (blockIdx.x + 1) % gridDim.x;
  int value = blockIdx.x;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
#if TWIN == 1
    int* row = rows;
#else
    int* row = rows + k % 2 * gridDim.x * 32;
#endif
    row[blockIdx.x * 32 + threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      store_release(done + blockIdx.x, k + 1);
#if TWIN == 2
      while (load_acquire(done + left) < k) {}
#else
      while (load_acquire(done + left) < k + 1) {}
#endif
      while (load_acquire(done + right) < k + 1) {}
    }
    __syncthreads();
    value += row[left * 32 + threadIdx.x];
  }
  out[blockIdx.x * 32 + threadIdx.x] = value;
}
