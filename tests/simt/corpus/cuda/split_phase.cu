// cuda::barrier in two halves: a thread arrives with its value written, does something else, and waits before it reads its neighbour's.
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) split_phase(const float* source, float* target, int rounds) {
  __shared__ float line[2][threads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier meeting;
  if (threadIdx.x == 0) init(&meeting, threads);
  __syncthreads();
  const size_t index = size_t(blockIdx.x) * threads + threadIdx.x;
  float value = source[index];
  for (int k = 0; k < rounds; ++k) {
    line[k & 1][threadIdx.x] = value;
    auto token = meeting.arrive();
    const float own = value * 0.5f + source[index + size_t(k + 1) * threads * gridDim.x];
    meeting.wait(std::move(token));
    value = own + line[k & 1][(threadIdx.x + 1) % threads];
  }
  target[index] = value;
}
