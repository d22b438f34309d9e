// The last CTA to count itself brings to shared memory, by cp.async in two stages, what all have left.
#include <cuda_pipeline.h>

__device__ __forceinline__ void fetch(int4* tile, const int4* sums, int block) {
  __pipeline_memcpy_async(&tile[threadIdx.x], &sums[block * 32 + threadIdx.x], 16);
}

extern "C" __global__ void __launch_bounds__(32)
async_last_block(const int4* in, int4* sums, unsigned* count, int4* total) {
  __shared__ bool last;
  __shared__ int4 tiles[2][32];
  fetch(tiles[0], in, blockIdx.x);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  sums[blockIdx.x * 32 + threadIdx.x] = tiles[0][threadIdx.x];
  __syncthreads();
#if TWIN == 2
  fetch(tiles[0], sums, 0);
#endif
  if (threadIdx.x == 0) {
#if TWIN != 1
    __threadfence();
#endif
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  int sum = 0;
#if TWIN != 2
  fetch(tiles[0], sums, 0);
#endif
  __pipeline_commit();
#pragma unroll 1
  for (int b = 0; b < gridDim.x; ++b) {
    if (b + 1 < gridDim.x) fetch(tiles[(b + 1) & 1], sums, b + 1);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += tiles[b & 1][threadIdx.x ^ 1].x;
    __syncthreads();
  }
  total[threadIdx.x] = make_int4(sum, sum, sum, sum);
}
