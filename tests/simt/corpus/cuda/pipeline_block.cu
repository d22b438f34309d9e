// cuda::pipeline shared by a block: every thread copies its share two stages ahead, reads a neighbour's.
#include <cooperative_groups.h>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

constexpr int stages = 2;
constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) pipeline_block(const float4* source, float4* target, int rounds) {
  __shared__ alignas(16) float4 tile[stages][threads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  const size_t base = size_t(blockIdx.x) * rounds * threads;
  int fetched = 0;
  for (int k = 0; k < rounds; ++k) {
    for (; fetched < rounds && fetched < k + stages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&tile[fetched % stages][threadIdx.x], source + base + size_t(fetched) * threads + threadIdx.x,
                         cuda::aligned_size_t<16>(sizeof(float4)), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    float4 value = tile[k % stages][(threadIdx.x + 1) % threads];
    value.x += 1;
    target[base + size_t(k) * threads + threadIdx.x] = value;
    pipeline.consumer_release();
  }
}
