// A wavefront over rows.
#include "../ptx.cuh"

constexpr int columns = 2;

extern "C" __global__ void __launch_bounds__(32) wavefront(int* table, int* progress, int* ticket) {
  __shared__ int drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
  __syncthreads();
  const int row = drawn;
#pragma unroll 1
  for (int c = 0; c < columns; ++c) {
    int value = c;
    if (row > 0) {
      if (threadIdx.x == 0)
#if TWIN == 1
        while (load_acquire(progress + row - 1) < c) {}
#else
        while (load_acquire(progress + row - 1) <= c) {}
#endif
      __syncthreads();
      value += table[((row - 1) * columns + c) * 32 + threadIdx.x];
    }
    table[(row * columns + c) * 32 + threadIdx.x] = value;
    __syncthreads();
#if TWIN == 2
    if (threadIdx.x == 0) store_relaxed(progress + row, c + 1);
#else
    if (threadIdx.x == 0) store_release(progress + row, c + 1);
#endif
  }
}
