// A volatile word a warp in shared memory: each warp publishes its sum, and all threads poll for all words, then add them up.
constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) volatile_flags(const int* source, int* target) {
  __shared__ int sums[threads / 32];
  __shared__ volatile int ready[threads / 32];
  if (threadIdx.x < threads / 32) ready[threadIdx.x] = 0;
  __syncthreads();
  int value = source[blockIdx.x * threads + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = value;
    __threadfence_block();
    ready[threadIdx.x / 32] = 1;
  }
  int total = 0;
  for (int w = 0; w < threads / 32; ++w) {
    while (ready[w] == 0) {}
    __threadfence_block();
    total += sums[w];
  }
  target[blockIdx.x * threads + threadIdx.x] = total;
}
