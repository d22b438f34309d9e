// cuda::barrier with bytes to expect: one thread fetches a tile a round, the block waits, reads and meets again.
#include <cuda/barrier>
#include <utility>

constexpr int threads = 128;
constexpr int floats = 1024;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace device = cuda::device;

extern "C" __global__ void __launch_bounds__(threads) barrier_tx(const float* source, float* target, int rounds) {
  __shared__ alignas(128) float tile[floats];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, threads);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < rounds; ++k) {
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      device::memcpy_async_tx(tile, source + size_t(k) * floats, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
      token = device::barrier_arrive_tx(barrier, 1, sizeof(tile));
    } else {
      token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < floats; i += threads) sum += tile[i];
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
  }
  target[blockIdx.x * threads + threadIdx.x] = sum;
}
