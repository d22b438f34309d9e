// A barrier over the CTAs that have work.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) ragged_barrier(int* data, int* out, int* count, int n) {
  if (blockIdx.x * 32 >= n) return;
#if TWIN == 1
  const int all = gridDim.x;
#elif TWIN == 2
  const int all = n / 32;
#else
  const int all = (n + 31) / 32;
#endif
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n) data[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    add_release(count, 1);
    while (load_acquire(count) < all) {}
  }
  __syncthreads();
  if (i < n) out[i] = data[n - 1 - i];
}
