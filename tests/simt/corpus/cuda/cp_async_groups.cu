// cp.async in groups, three stages ahead, and a barrier a round: a sum over a window of the neighbours.
#include <cstdint>

constexpr int stages = 3;
constexpr int threads = 128;

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ void fetch(float4* target, const float4* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(target)), "l"(source) : "memory");
}

extern "C" __global__ void __launch_bounds__(threads) cp_async_groups(const float4* source, float4* target, int rounds) {
  __shared__ alignas(16) float4 tile[stages][threads];
  const float4* mine = source + size_t(blockIdx.x) * rounds * threads + threadIdx.x;
  for (int k = 0; k < stages - 1; ++k) {
    if (k < rounds) fetch(&tile[k][threadIdx.x], mine + size_t(k) * threads);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int k = 0; k < rounds; ++k) {
    asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
    __syncthreads();
    const float4 left = tile[k % stages][(threadIdx.x + threads - 1) % threads];
    const float4 right = tile[k % stages][(threadIdx.x + 1) % threads];
    const int next = k + stages - 1;
    if (next < rounds) fetch(&tile[next % stages][threadIdx.x], mine + size_t(next) * threads);
    asm volatile("cp.async.commit_group;" ::: "memory");
    target[(size_t(blockIdx.x) * rounds + k) * threads + threadIdx.x] =
        make_float4(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w);
  }
}
