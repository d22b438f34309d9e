// Transposition through shared memory.
constexpr int tile = 16;

extern "C" __global__ void __launch_bounds__(64) transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float part[tile][tile + 1];
  const int x = blockIdx.x * tile + threadIdx.x;
#pragma unroll 1
  for (int j = threadIdx.y; j < tile; j += blockDim.y) {
    const int y = blockIdx.y * tile + j;
    if (x < columns && y < rows) part[j][threadIdx.x] = in[y * columns + x];
  }
#if TWIN != 1
  __syncthreads();
#endif
#if TWIN == 2
  const int u = blockIdx.x * tile + threadIdx.x;
  const int first = blockIdx.y * tile;
  const int width = columns, height = rows;
#else
  const int u = blockIdx.y * tile + threadIdx.x;
  const int first = blockIdx.x * tile;
  const int width = rows, height = columns;
#endif
#pragma unroll 1
  for (int j = threadIdx.y; j < tile; j += blockDim.y)
    if (u < width && first + j < height) out[(first + j) * rows + u] = part[threadIdx.x][j];
}
