// A tile of 32 by 32 is turned in shared memory.
constexpr int side = 32;
constexpr int rows = 8;

extern "C" __global__ void __launch_bounds__(side * rows) transpose(const float* source, float* target, int width, int height) {
  __shared__ float tile[side][side + 1];
  int x = blockIdx.x * side + threadIdx.x;
  int y = blockIdx.y * side + threadIdx.y;
  for (int j = 0; j < side; j += rows)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = source[size_t(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * side + threadIdx.x;
  y = blockIdx.x * side + threadIdx.y;
  for (int j = 0; j < side; j += rows)
    if (x < height && y + j < width) target[size_t(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
