// Threads that run out of work drop out of an mbarrier's count; the others go on meeting at it.
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int threads = 64;

extern "C" __global__ void __launch_bounds__(threads) leavers(const int* source, int* target) {
  __shared__ int line[threads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier meeting;
  if (threadIdx.x == 0) init(&meeting, threads);
  line[threadIdx.x] = source[blockIdx.x * threads + threadIdx.x];
  __syncthreads();
  for (int half = threads / 2; half >= 16; half /= 2) {
    if (threadIdx.x >= half) {
      meeting.arrive_and_drop();
      return;
    }
    line[threadIdx.x] += line[threadIdx.x + half];
    meeting.arrive_and_wait();
  }
  target[blockIdx.x * 16 + threadIdx.x] = line[threadIdx.x];
}
