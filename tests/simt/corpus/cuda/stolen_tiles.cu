// Work stealing on sm_100: a CTA asks for the place of one that has not started, and goes on with it if it got it.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) stolen_tiles(const float* source, float* target) {
  __shared__ uint4 answer;
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  uint32_t parity = 0;
  int tile = blockIdx.x;
  while (true) {
    if (threadIdx.x == 0) {
      ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_acquire, ptx::space_cluster, ptx::scope_cluster);
      ptx::clusterlaunchcontrol_try_cancel(&answer, &full);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &full, sizeof(answer));
    }
    target[size_t(tile) * threads + threadIdx.x] = 2.0f * source[size_t(tile) * threads + threadIdx.x];
    while (!ptx::mbarrier_try_wait_parity(&full, parity)) {}
    parity ^= 1;
    const uint4 said = answer;
    if (!ptx::clusterlaunchcontrol_query_cancel_is_canceled(said)) break;
    tile = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x<int>(said);
    ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
    __syncthreads();
  }
}
