// Split-K: the slices of a tile count themselves in the counter of the tile, and the last one adds what all have left.
extern "C" __global__ void __launch_bounds__(32) tile_counters(const float* in, float* partial, unsigned* counts, float* out) {
  __shared__ bool last;
  const int tile = blockIdx.x, slice = blockIdx.y;
  partial[(tile * gridDim.y + slice) * 32 + threadIdx.x] = in[(slice * gridDim.x + tile) * 32 + threadIdx.x] + 1;
#if TWIN != 1
  __threadfence();
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned ticket = atomicAdd(&counts[tile], 1);
#if TWIN == 2
    last = ticket == gridDim.y - 2;
#else
    last = ticket == gridDim.y - 1;
#endif
    if (last) atomicExch(&counts[tile], 0);
  }
  __syncthreads();
  if (!last) return;
#if TWIN != 3
  __threadfence();
#endif
  float sum = 0;
#pragma unroll 1
  for (int s = 0; s < gridDim.y; ++s) sum += partial[(tile * gridDim.y + s) * 32 + threadIdx.x];
  out[tile * 32 + threadIdx.x] = sum;
}
