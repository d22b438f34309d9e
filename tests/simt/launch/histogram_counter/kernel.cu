// A histogram, and behind a counter its prefix sums.
extern "C" __global__ void __launch_bounds__(32) histogram_counter(const int* keys, int* bins, unsigned* count, int* sums) {
  __shared__ bool last;
  atomicAdd(bins + (keys[blockIdx.x * 32 + threadIdx.x] & 3), 1);
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN != 1
    __threadfence();
#endif
#if TWIN == 2
    last = atomicAdd(count, 1) == gridDim.x - 2;
#else
    last = atomicAdd(count, 1) == gridDim.x - 1;
#endif
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x >= 4) return;
  int sum = 0;
#pragma unroll 1
  for (int b = 0; b <= threadIdx.x; ++b) sum += bins[b];
  sums[threadIdx.x] = sum;
}
