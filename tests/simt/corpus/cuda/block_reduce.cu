// A block's sum: shuffles within warps, shared memory between them.
constexpr int threads = 256;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void __launch_bounds__(threads) block_reduce(const float* source, float* sums, int rounds) {
  __shared__ float partial[threads / 32];
  for (int k = 0; k < rounds; ++k) {
    const size_t row = size_t(blockIdx.x) * rounds + k;
    float value = warp_sum(source[row * threads + threadIdx.x]);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
      value = warp_sum(threadIdx.x < threads / 32 ? partial[threadIdx.x] : 0);
      if (threadIdx.x == 0) sums[row] = value;
    }
    __syncthreads();
  }
}
