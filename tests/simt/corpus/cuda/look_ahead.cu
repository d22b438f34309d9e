// The tiles of the next two rounds are fetched while this one is summed up: a ring of four stages, so that the tile that is
// fetched replaces the one of two rounds ago, which all threads have left by the barrier of the round before.
#include <cuda/pipeline>

constexpr int STAGES = 4, AHEAD = 3, TILE = 64;

extern "C" __global__ void __launch_bounds__(TILE) look_ahead(const float4 *in, float *out, int tiles) {
  __shared__ float4 buf[STAGES][TILE];
  const int t = threadIdx.x;
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  float sum = 0;
  int fetched = 0;
  for (int k = 0; k < tiles; ++k) {
#pragma unroll 1
    for (; fetched < k + AHEAD; ++fetched) {
      pipe.producer_acquire();
      if (fetched < tiles) {
        cuda::memcpy_async(&buf[fetched % STAGES][t], &in[fetched * TILE + t], cuda::aligned_size_t<16>(16), pipe);
      }
      pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<AHEAD - 1>(pipe);
    __syncthreads();
    sum += buf[k % STAGES][TILE - 1 - t].x;
    pipe.consumer_release();
  }
  out[t] = sum;
}
