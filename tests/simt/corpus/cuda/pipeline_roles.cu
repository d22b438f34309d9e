// cuda::pipeline with roles: the first warp produces by bulk-capable memcpy_async, the others consume.
#include <cooperative_groups.h>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

constexpr int stages = 3;
constexpr int producers = 32;
constexpr int consumers = 96;

extern "C" __global__ void __launch_bounds__(producers + consumers) pipeline_roles(const float* source, float* target, int rounds) {
  __shared__ alignas(16) float tile[stages][consumers];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  const bool produces = threadIdx.x < producers;
  auto pipeline = cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  const size_t base = size_t(blockIdx.x) * rounds * consumers;
  if (produces) {
    for (int k = 0; k < rounds; ++k) {
      pipeline.producer_acquire();
      for (int i = threadIdx.x; i < consumers; i += producers)
        cuda::memcpy_async(&tile[k % stages][i], source + base + size_t(k) * consumers + i, cuda::aligned_size_t<4>(sizeof(float)), pipeline);
      pipeline.producer_commit();
    }
  } else {
    const int i = threadIdx.x - producers;
    for (int k = 0; k < rounds; ++k) {
      pipeline.consumer_wait();
      target[base + size_t(k) * consumers + i] = tile[k % stages][consumers - 1 - i];
      pipeline.consumer_release();
    }
  }
}
