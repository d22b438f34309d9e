// A tile that leaves by a bulk copy is handed to another CTA.
#include <cuda/ptx>
#include "../ptx.cuh"
namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(32) bulk_then_flag(int* tile, int* out, int* flag, int* ticket) {
  __shared__ alignas(128) int part[32];
  __shared__ int drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
  part[threadIdx.x] = threadIdx.x;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (drawn == 0) {
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, tile, part, sizeof(part));
      ptx::cp_async_bulk_commit_group();
#if TWIN == 1
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#else
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
#if TWIN == 2
      store_relaxed(flag, 1);
#else
      store_release(flag, 1);
#endif
#if TWIN == 1
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
    }
  } else {
    if (threadIdx.x == 0)
      while (load_acquire(flag) == 0) {}
    __syncthreads();
    out[drawn * 32 + threadIdx.x] = tile[threadIdx.x];
  }
}
