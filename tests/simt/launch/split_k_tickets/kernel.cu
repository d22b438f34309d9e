// Slices of K are added to a tile in the order of tickets.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(64) split_k_tickets(const int* partial, int* tile, int* ticket, int* turn) {
  __shared__ int drawn;
  if (threadIdx.x == 0) {
    drawn = atomicAdd(ticket, 1);
    while (load_acquire(turn) != drawn) {}
  }
  __syncthreads();
  const int slice = drawn;
  const int value = partial[slice * 64 + threadIdx.x];
  tile[threadIdx.x] = slice == 0 ? value : tile[threadIdx.x] + value;
#if TWIN != 2
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
#if TWIN == 1
    store_relaxed(turn, slice + 1);
#elif TWIN == 3
    store_release_cta(turn, slice + 1);
#else
    store_release(turn, slice + 1);
#endif
  }
}
