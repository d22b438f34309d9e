// Persistent CTAs with a fixed share of the tiles.
extern "C" __global__ void __launch_bounds__(64) static_tiles(const float* in, float* out, int tiles) {
  __shared__ float part[64];
  const float shift = blockIdx.x;
#if TWIN == 1
  const int step = gridDim.x - 1;
#else
  const int step = gridDim.x;
#endif
#pragma unroll 1
  for (int tile = blockIdx.x; tile < tiles; tile += step) {
    part[threadIdx.x] = in[tile * 64 + threadIdx.x];
    __syncthreads();
    out[tile * 64 + threadIdx.x] = part[63 - threadIdx.x] + shift;
#if TWIN != 2
    __syncthreads();
#endif
  }
}
