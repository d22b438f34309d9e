// Two layers in one cooperative launch: each CTA reads all tiles of what the layer before has left, by cp.async.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

__device__ __forceinline__ void fetch(int4* tile, const int4* x, int block) {
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[block * 32 + threadIdx.x], 16);
  __pipeline_commit();
}

__device__ __forceinline__ void layer(int4 (*tiles)[32], const int4* x, int4* y, bool begun) {
  int sum = 0;
  if (!begun) fetch(tiles[0], x, 0);
#pragma unroll 1
  for (int b = 0; b < gridDim.x; ++b) {
    if (b + 1 < gridDim.x) fetch(tiles[(b + 1) & 1], x, b + 1);
    else __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += tiles[b & 1][threadIdx.x ^ 1].x;
    __syncthreads();
  }
  y[blockIdx.x * 32 + threadIdx.x] = make_int4(sum, sum, sum, sum);
}

extern "C" __global__ void __launch_bounds__(32) async_layers(const int4* a, int4* b, int4* c) {
  __shared__ int4 tiles[2][32];
  layer(tiles, a, b, false);
#if TWIN == 2
  fetch(tiles[0], b, 0);
#endif
#if TWIN != 1
  cooperative_groups::this_grid().sync();
#endif
  layer(tiles, b, c, TWIN == 2);
}
