// The last CTA to count itself adds what all have left. Each adds up in volatile shared memory, and all threads fence.
__device__ __forceinline__ void add_up(volatile float* part, float mine) {
  part[threadIdx.x] = mine;
  __syncthreads();
#pragma unroll 1
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] = mine += part[threadIdx.x + k];
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(32) last_block_volatile(const float* in, float* sums, unsigned* count) {
  __shared__ float part[32];
  __shared__ bool last;
  add_up(part, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
#if TWIN != 1
  __threadfence();
#endif
#if TWIN == 3
  if (threadIdx.x == 0) last = atomicInc(count, gridDim.x - 1) == gridDim.x - 2;
#else
  if (threadIdx.x == 0) last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
#endif
  __syncthreads();
  if (!last) return;
#if TWIN != 2
  __threadfence();
#endif
  float mine = 0;
#pragma unroll 1
  for (int b = threadIdx.x; b < gridDim.x; b += 32) mine += sums[b];
  add_up(part, mine);
  if (threadIdx.x == 0) sums[0] = part[0];
}
