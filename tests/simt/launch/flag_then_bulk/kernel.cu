// A tile that was written by ordinary stores is fetched by a bulk copy.
#include <cuda/ptx>
#include "../ptx.cuh"
namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(32) flag_then_bulk(int* tile, int* out, int* flag, int* ticket) {
  __shared__ alignas(128) int part[32];
  __shared__ uint64_t full;
  __shared__ int drawn;
  if (threadIdx.x == 0) {
    drawn = atomicAdd(ticket, 1);
    ptx::mbarrier_init(&full, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (drawn == 0) {
    tile[threadIdx.x] = threadIdx.x;
#if TWIN != 1
    ptx::fence_proxy_async(ptx::space_global);
#endif
    __syncthreads();
#if TWIN == 2
    if (threadIdx.x == 0) store_relaxed(flag, 1);
#else
    if (threadIdx.x == 0) store_release(flag, 1);
#endif
  } else {
    if (threadIdx.x == 0) {
      while (load_acquire(flag) == 0) {}
#if TWIN != 1
      ptx::fence_proxy_async(ptx::space_global);
#endif
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(part));
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, tile, sizeof(part), &full);
    }
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    out[drawn * 32 + threadIdx.x] = part[threadIdx.x];
  }
}
