// Stream-K with fix-up: the first CTA of a tile adds the parts of those that go on with it.
#include "../ptx.cuh"

constexpr int steps = 3;

extern "C" __global__ void __launch_bounds__(32) stream_k(const int* in, int* tiles, int* parts, int* flags, int share) {
  const int begin = blockIdx.x * share, end = begin + share;
#pragma unroll 1
  for (int at = begin; at < end;) {
    const int tile = at / steps;
    const int stop = min(end, (tile + 1) * steps);
    const bool first = at == tile * steps;
    int sum = 0;
#pragma unroll 1
    for (; at < stop; ++at) sum += in[at * 32 + threadIdx.x];
    if (!first) {
      parts[blockIdx.x * 32 + threadIdx.x] = sum;
      __syncthreads();
#if TWIN == 1
      if (threadIdx.x == 0) store_relaxed(&flags[blockIdx.x], 1);
#else
      if (threadIdx.x == 0) store_release(&flags[blockIdx.x], 1);
#endif
      continue;
    }
#pragma unroll 1
    for (int other = blockIdx.x + 1, done = stop; done < (tile + 1) * steps; ++other, done += share) {
      if (threadIdx.x == 0)
        while (load_acquire(&flags[other]) == 0) {}
      __syncthreads();
#if TWIN == 2
      sum += parts[(other % (gridDim.x - 1) + 1) * 32 + threadIdx.x];
#else
      sum += parts[other * 32 + threadIdx.x];
#endif
    }
    tiles[tile * 32 + threadIdx.x] = sum;
  }
}
