// Vector addition with a guarded tail.
extern "C" __global__ void __launch_bounds__(128) vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if TWIN == 1
  c += blockIdx.x * (blockDim.x - 1) + threadIdx.x;
#else
  c += i;
#endif
#if TWIN == 2
  if (i <= n)
#else
  if (i < n)
#endif
    *c = a[i] + b[i];
}
