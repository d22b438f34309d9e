// CTAs take over the tiles of those that have not started (sm_100).
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(32) cancelled_tiles(const int* in, int* out) {
  __shared__ uint4 said;
  __shared__ uint64_t arrived;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&arrived, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  int tile = blockIdx.x;
  unsigned parity = 0;
#pragma unroll 1
  for (;;) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &arrived, sizeof(said));
      ptx::clusterlaunchcontrol_try_cancel(&said, &arrived);
    }
    out[tile * 32 + threadIdx.x] = in[tile * 32 + threadIdx.x] + 1;
#if TWIN != 2
    while (!ptx::mbarrier_try_wait_parity(&arrived, parity)) {}
#endif
    parity ^= 1;
    const uint4 answer = make_uint4(said.x, said.y, said.z, said.w);
#if TWIN != 1
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
#endif
    if (!ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer)) break;
    tile = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x<int>(answer);
  }
}
