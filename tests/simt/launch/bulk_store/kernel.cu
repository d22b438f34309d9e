// A tile goes out by a bulk copy.
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(64) bulk_store(int* out) {
  __shared__ alignas(128) int part[256];
#pragma unroll 1
  for (int i = threadIdx.x; i < 256; i += 64) part[i] = blockIdx.x + i;
#if TWIN != 2
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN == 1
    const int pitch = 252;
#else
    const int pitch = 256;
#endif
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * pitch, part, sizeof(part));
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}
