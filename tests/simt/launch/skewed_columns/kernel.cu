// A diagonal of a matrix a CTA, around the edge.
extern "C" __global__ void __launch_bounds__(32) skewed_columns(const float* in, float* out, int rows) {
#pragma unroll 1
  for (int y = threadIdx.x; y < rows; y += 32) {
#if TWIN == 1
    const int column = (blockIdx.x + y / 2 * blockIdx.x) % gridDim.x;
#elif TWIN == 2
    const int column = (blockIdx.x + y) % (gridDim.x - 1);
#else
    const int column = (blockIdx.x + y) % gridDim.x;
#endif
    out[y * gridDim.x + column] = 2.0f * in[blockIdx.x * rows + y];
  }
}
