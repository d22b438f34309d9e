// All-reduce of two GPUs: the same kernel runs on both.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) two_gpu_all_reduce(int* mine, const int* theirs, int* out, int* my_flags, int* their_flags, int rank) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  mine[i] = i + rank;
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN == 1
    store_release(their_flags + blockIdx.x, 1);
#else
    store_release_sys(their_flags + blockIdx.x, 1);
#endif
#if TWIN == 2
    while (load_acquire(my_flags + blockIdx.x) == 0) {}
#elif TWIN == 3
    while (load_acquire_sys(their_flags + blockIdx.x) == 0) {}
#else
    while (load_acquire_sys(my_flags + blockIdx.x) == 0) {}
#endif
  }
  __syncthreads();
  out[i] = mine[i] + theirs[i];
}
