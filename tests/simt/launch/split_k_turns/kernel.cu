// Slices of K are added to a tile in the order of their CTAs.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) split_k_turns(const int* partial, int* tile, int* turn) {
  if (threadIdx.x == 0)
    while (load_acquire(turn) != blockIdx.x) {}
  __syncthreads();
  const int value = partial[blockIdx.x * 32 + threadIdx.x];
  tile[threadIdx.x] = blockIdx.x == 0 ? value : tile[threadIdx.x] + value;
  __syncthreads();
#if TWIN == 1
  const int next = blockIdx.x;
#elif TWIN == 2
  const int next = blockIdx.x + 2;
#else
  const int next = blockIdx.x + 1 == gridDim.x ? 0 : blockIdx.x + 1;
#endif
  if (threadIdx.x == 0) store_release(turn, next);
}
