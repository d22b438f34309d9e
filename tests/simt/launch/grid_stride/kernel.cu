// A grid-stride loop.
extern "C" __global__ void __launch_bounds__(64) grid_stride(const float* in, float* out, int n) {
#if TWIN == 1
  const int stride = (gridDim.x - 1) * blockDim.x;
#else
  const int stride = gridDim.x * blockDim.x;
#endif
#if TWIN == 2
  const int first = blockIdx.x * (blockDim.x / 2) + threadIdx.x;
#else
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
#endif
  const float shift = blockIdx.x;
#pragma unroll 1
  for (int i = first; i < n; i += stride) out[i] = in[i] + shift;
}
