// A block draws rows and adds up each; the last row is the shorter one of a vector that no row divides.
extern "C" __global__ void __launch_bounds__(64) drawn_rows(const float* in, float* sums, unsigned* next, int rows, int n) {
  __shared__ unsigned drawn;
  __shared__ float part[64];
  const int t = threadIdx.x;
  for (;;) {
    if (t == 0) drawn = atomicAdd(next, 1u);
    __syncthreads();
    const unsigned row = drawn;
    if (row >= rows) return;
    float value = 0;
    const int at = row * 64 + t;
    if (at < n) value = in[at];
    part[t] = value;
    __syncthreads();
#pragma unroll 1
    for (int k = 32; k > 0; k /= 2) {
      if (t < k) part[t] += part[t + k];
#if TWIN != 1
      __syncthreads();
#endif
    }
#if TWIN == 2
    if (t == 0) sums[row / 2] = part[0];
#else
    if (t == 0) sums[row] = part[0];
#endif
  }
}
