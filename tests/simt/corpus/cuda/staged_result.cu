// Tiles are summed up through a ring of three stages, and each result is put in order in the memory of the ring before it is
// stored. The copies of the next tile may begin only when all threads have read their part of the result.
#include <cuda_pipeline.h>

constexpr int STAGES = 3, PART = 64;

extern "C" __global__ void __launch_bounds__(PART) staged_result(const float4 *in, float4 *out, int tiles, int parts) {
  __shared__ float4 ring[STAGES][PART];
  const int t = threadIdx.x;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile, in += parts * PART) {
    for (int s = 0; s < STAGES - 1; ++s) {
      if (s < parts) __pipeline_memcpy_async(&ring[s][t], &in[s * PART + t], 16);
      __pipeline_commit();
    }
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < parts; ++k) {
      __pipeline_wait_prior(STAGES - 2);
      __syncthreads();
      const int next = k + STAGES - 1;
      if (next < parts) __pipeline_memcpy_async(&ring[next % STAGES][t], &in[next * PART + t], 16);
      __pipeline_commit();
      sum += ring[k % STAGES][PART - 1 - t].x;
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    reinterpret_cast<float *>(ring)[t % 4 * (PART / 4) + t / 4] = sum;
    __syncthreads();
    const int last = PART - 1 - t;
    if (last < PART / 4) out[tile * (PART / 4) + last] = ring[0][last];
    __syncthreads();
  }
}
