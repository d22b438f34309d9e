// cuda::pipeline of a single thread: each thread copies ahead what only it reads, without any barrier.
#include <cuda/pipeline>

constexpr int stages = 4;
constexpr int threads = 64;

extern "C" __global__ void __launch_bounds__(threads) pipeline_thread(const float4* source, float4* target, int rounds) {
  __shared__ alignas(16) float4 tile[stages][threads];
  auto pipeline = cuda::make_pipeline();
  const size_t base = size_t(blockIdx.x) * rounds * threads + threadIdx.x;
  for (int k = 0; k < stages - 1 && k < rounds; ++k) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&tile[k][threadIdx.x], source + base + size_t(k) * threads, cuda::aligned_size_t<16>(16), pipeline);
    pipeline.producer_commit();
  }
  for (int k = 0; k < rounds; ++k) {
    const int next = k + stages - 1;
    pipeline.producer_acquire();
    if (next < rounds)
      cuda::memcpy_async(&tile[next % stages][threadIdx.x], source + base + size_t(next) * threads, cuda::aligned_size_t<16>(16), pipeline);
    pipeline.producer_commit();
    cuda::pipeline_consumer_wait_prior<stages - 1>(pipeline);
    float4 value = tile[k % stages][threadIdx.x];
    value.w = 0;
    target[base + size_t(k) * threads] = value;
    pipeline.consumer_release();
  }
}
