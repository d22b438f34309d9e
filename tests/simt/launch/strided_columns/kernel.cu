// One column of a matrix a CTA.
extern "C" __global__ void __launch_bounds__(32) strided_columns(const float* in, float* out, int rows) {
#if TWIN == 1
  const int pitch = gridDim.x - 1;
#else
  const int pitch = gridDim.x;
#endif
#if TWIN == 2
  const int column = blockIdx.x * 2 % gridDim.x;
#else
  const int column = blockIdx.x;
#endif
#pragma unroll 1
  for (int y = threadIdx.x; y < rows; y += 32) out[y * pitch + column] = 2.0f * in[y * gridDim.x + blockIdx.x];
}
