// A matrix in tiles of 16 by 16, with guards in both directions.
constexpr int tile = 16;

extern "C" __global__ void __launch_bounds__(64) tiles_2d(const float* in, float* out, int rows, int columns) {
  const int x = blockIdx.x * tile + threadIdx.x;
#if TWIN == 1
  out -= blockIdx.x;
#endif
#if TWIN == 2
  const int pitch = columns - 1;
#else
  const int pitch = columns;
#endif
#pragma unroll 1
  for (int y = blockIdx.y * tile + threadIdx.y; y < (blockIdx.y + 1) * tile; y += blockDim.y)
    if (x < columns && y < rows) out[y * pitch + x] = 2.0f * in[y * columns + x];
}
