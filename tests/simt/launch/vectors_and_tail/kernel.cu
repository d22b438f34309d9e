// Vectors of four elements, the tail one by one.
extern "C" __global__ void __launch_bounds__(64) vectors_and_tail(const float* in, float* out, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float shift = blockIdx.x;
#if TWIN == 2
  if (i <= n / 4) {
#else
  if (i < n / 4) {
#endif
    float4 v = reinterpret_cast<const float4*>(in)[i];
    v.x += shift, v.y += shift, v.z += shift, v.w += shift;
    reinterpret_cast<float4*>(out)[i] = v;
  }
#if TWIN == 1
  const int tail = n % 4 + 1;
#else
  const int tail = n % 4;
#endif
  if (blockIdx.x == 0 && threadIdx.x < tail) out[n - 1 - threadIdx.x] = in[n - 1 - threadIdx.x];
}
