// Tiles are drawn from a counter.
extern "C" __global__ void __launch_bounds__(64) work_counter(const int* in, int* out, int* next, int tiles) {
  __shared__ int drawn;
#pragma unroll 1
  for (;;) {
#if TWIN == 2
    if (threadIdx.x == 0) drawn = atomicAdd_block(next, 1);
#else
    if (threadIdx.x == 0) drawn = atomicAdd(next, 1);
#endif
    __syncthreads();
    const int tile = drawn;
#if TWIN != 1
    __syncthreads();
#endif
    if (tile >= tiles) break;
    out[tile * 64 + threadIdx.x] = in[tile * 64 + threadIdx.x] + blockIdx.x;
  }
}
