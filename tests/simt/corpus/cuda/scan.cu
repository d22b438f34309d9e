// The inclusive prefix sum of a block, two buffers in turn.
constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) scan(const int* source, int* target) {
  __shared__ int buffer[2][threads];
  const int index = blockIdx.x * threads + threadIdx.x;
  int turn = 0;
  buffer[0][threadIdx.x] = source[index];
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < threads; step *= 2) {
    int value = buffer[turn][threadIdx.x];
    if (threadIdx.x >= step) value += buffer[turn][threadIdx.x - step];
    buffer[turn ^ 1][threadIdx.x] = value;
    turn ^= 1;
    __syncthreads();
  }
  target[index] = buffer[turn][threadIdx.x];
}
