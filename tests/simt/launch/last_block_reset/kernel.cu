// The last CTA to count itself adds up, in volatile shared memory, and resets the count of the module for the next launch.
__device__ unsigned counted = 0;

__device__ __forceinline__ void add_up(volatile float* part, float mine) {
  part[threadIdx.x] = mine;
  __syncthreads();
#pragma unroll 1
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] = mine += part[threadIdx.x + k];
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(64) last_block_reset(const float* in, float* sums) {
  __shared__ float part[64];
  __shared__ bool last;
  add_up(part, in[blockIdx.x * 64 + threadIdx.x]);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = part[0];
#if TWIN != 1
    __threadfence();
#endif
    last = atomicInc(&counted, gridDim.x) == gridDim.x - 1;
#if TWIN != 2
    __threadfence();
#endif
  }
  __syncthreads();
  if (!last) return;
  float mine = 0;
#pragma unroll 1
  for (int b = threadIdx.x; b < gridDim.x; b += 64) mine += sums[b];
  add_up(part, mine);
  if (threadIdx.x == 0) {
    sums[0] = part[0];
#if TWIN == 3
    counted = 0;
#else
    atomicExch(&counted, 0);
#endif
  }
}
