// One warpgroup multiplies tiles that it wrote itself: generic writes, a proxy fence, a barrier, wgmma.
#include <cuda/ptx>
#include <cuda_fp16.h>
#include "wgmma.cuh"

namespace ptx = cuda::ptx;

constexpr int threads = 128;
constexpr int side = 64;

struct Memory {
  alignas(1024) __half a[side * side];
  alignas(1024) __half b[side * side];
};

// Where the eight halves from column c on of row r lie under the 128-byte swizzle.
__device__ int swizzled(int r, int c) { return r * side + ((c / 8) ^ (r % 8)) * 8; }

extern "C" __global__ void __launch_bounds__(threads) wgmma_tile(const __half* a, const __half* b, float* c, int k_tiles) {
  __shared__ Memory memory;
  float sum[32] = {};
  for (int t = 0; t < k_tiles; ++t) {
    for (int i = threadIdx.x; i < side * side / 8; i += threads) {
      const int r = i / 8, column = i % 8 * 8;
      *reinterpret_cast<uint4*>(&memory.a[swizzled(r, column)]) = *reinterpret_cast<const uint4*>(&a[(size_t(t) * side + r) * side + column]);
      *reinterpret_cast<uint4*>(&memory.b[swizzled(r, column)]) = *reinterpret_cast<const uint4*>(&b[(size_t(t) * side + r) * side + column]);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    wgmma_fence();
    for (int k = 0; k < side / 16; ++k)
      wgmma_64x64x16(sum, descriptor(shared_address(memory.a) + k * 32), descriptor(shared_address(memory.b) + k * 16 * 128));
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
  }
  for (int i = 0; i < 32; ++i) c[i * threads + threadIdx.x] = sum[i];
}
