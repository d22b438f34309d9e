// Every thread writes into the other GPU's memory and counts there; the other GPU waits for the count.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) push(int* theirs, const int* mine, int* their_count, int* my_count, int* out) {
  theirs[threadIdx.x] = threadIdx.x;
#if TWIN == 1
  __threadfence();
#else
  __threadfence_system();
#endif
#if TWIN == 2
  atomicAdd(their_count, 1);
#else
  atomicAdd_system(their_count, 1);
#endif
  if (threadIdx.x == 0)
#if TWIN == 3
    while (load_acquire_sys(my_count) < 31) {}
#else
    while (load_acquire_sys(my_count) < 32) {}
#endif
  __syncthreads();
  out[threadIdx.x] = mine[31 - threadIdx.x];
}
