// A CTA begins with the tile of its own number and draws the next one while it works: the scheduler of persistent kernels.
extern "C" __global__ void __launch_bounds__(64) tile_scheduler(const int* in, int* out, int* next, int columns, int tiles) {
  __shared__ int drawn;
  int tile = blockIdx.x;
#pragma unroll 1
  while (tile < tiles) {
#if TWIN == 1
    if (threadIdx.x == 0) drawn = atomicAdd(next, 1);
#else
    if (threadIdx.x == 0) drawn = atomicAdd(next, 1) + gridDim.x;
#endif
    const int row = tile / columns * 8 + threadIdx.x / 8;
    const int column = tile % columns * 8 + threadIdx.x % 8;
#if TWIN == 2
    const int pitch = columns * 8 - 1;
#else
    const int pitch = columns * 8;
#endif
    out[row * pitch + column] = 2 * in[row * columns * 8 + column];
    __syncthreads();
    tile = drawn;
#if TWIN != 3
    __syncthreads();
#endif
  }
}
