// Two warps produce and two consume through named barriers: 1 and 2 say full, 3 and 4 empty.
constexpr int threads = 128;
constexpr int half = threads / 2;

template <int count>
__device__ void meet(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(count) : "memory");
}
template <int count>
__device__ void arrive(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(count) : "memory");
}

extern "C" __global__ void __launch_bounds__(threads) named_barriers(const float* source, float* target, int rounds) {
  __shared__ float buffer[2][half];
  const int lane = threadIdx.x % half;
  const size_t base = size_t(blockIdx.x) * rounds * half + lane;
  if (threadIdx.x < half) {
    for (int k = 0; k < rounds; ++k) {
      const int s = k & 1;
      if (k >= 2) meet<threads>(3 + s);
      buffer[s][lane] = source[base + size_t(k) * half];
      arrive<threads>(1 + s);
    }
  } else {
    for (int k = 0; k < rounds; ++k) {
      const int s = k & 1;
      meet<threads>(1 + s);
      target[base + size_t(k) * half] = buffer[s][half - 1 - lane];
      if (k + 2 < rounds) arrive<threads>(3 + s);
    }
  }
}
