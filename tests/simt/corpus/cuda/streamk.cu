// Stream-K: a CTA that has the end of a tile waits for the flags of those that had its beginning and adds their sums.
constexpr int T = 128;
__device__ inline void wait(const int* flag) {
  if (threadIdx.x == 0) {
    int v;
    do { asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); } while (v == 0);
  }
  __syncthreads();
}
__device__ inline void set(int* flag) {
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" :: "l"(flag) : "memory");
}
extern "C" __global__ void __launch_bounds__(T) streamk(const float* a, float* c, float* work, int* flags, int steps_of_tile, int steps) {
  int cta = blockIdx.x, begin = cta * steps, end = begin + steps;
  while (begin < end) {
    int tile = begin / steps_of_tile, first = tile * steps_of_tile, last = first + steps_of_tile;
    int stop = min(end, last);
    float sum = 0;
    for (int s = begin; s < stop; ++s) sum += a[(size_t)s * T + threadIdx.x];
    if (stop == last) {
      if (begin > first) {
        for (int other = first / steps; other < cta; ++other) {
          wait(&flags[other]);
          sum += work[other * T + threadIdx.x];
        }
      }
      c[tile * T + threadIdx.x] = sum;
    } else {
      work[cta * T + threadIdx.x] = sum;
      set(&flags[cta]);
    }
    begin = stop;
  }
}
