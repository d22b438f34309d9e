// Layer normalisation of rows: vector loads, Welford by shuffles, a staging word per warp.
struct Stats { float mean, m2, count; };
__device__ inline Stats join(Stats a, Stats b) {
  float n = a.count + b.count, d = b.mean - a.mean;
  if (n == 0) return a;
  return {a.mean + d * b.count / n, a.m2 + b.m2 + d * d * a.count * b.count / n, n};
}
__device__ inline Stats shuffled(Stats s, int d) {
  return {__shfl_xor_sync(~0u, s.mean, d), __shfl_xor_sync(~0u, s.m2, d), __shfl_xor_sync(~0u, s.count, d)};
}
extern "C" __global__ void __launch_bounds__(256) layernorm(const float4* x, const float4* gamma, const float4* beta, float4* y, int rows, int columns) {
  __shared__ Stats staged[8];
  __shared__ float mean, rstd;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const float4* from = x + (size_t)row * (columns / 4);
    Stats s = {0, 0, 0};
    for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
      float4 v = from[i];
      s = join(s, {v.x, 0, 1}); s = join(s, {v.y, 0, 1}); s = join(s, {v.z, 0, 1}); s = join(s, {v.w, 0, 1});
    }
    for (int d = 16; d > 0; d /= 2) s = join(s, shuffled(s, d));
    if (lane == 0) staged[warp] = s;
    __syncthreads();
    if (warp == 0) {
      s = lane < 8 ? staged[lane] : Stats{0, 0, 0};
      for (int d = 4; d > 0; d /= 2) s = join(s, shuffled(s, d));
      if (lane == 0) { mean = s.mean; rstd = rsqrtf(s.m2 / s.count + 1e-5f); }
    }
    __syncthreads();
    float m = mean, r = rstd;
    for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
      float4 v = from[i], g = gamma[i], b = beta[i];
      y[(size_t)row * (columns / 4) + i] = make_float4((v.x - m) * r * g.x + b.x, (v.y - m) * r * g.y + b.y, (v.z - m) * r * g.z + b.z, (v.w - m) * r * g.w + b.w);
    }
  }
}
