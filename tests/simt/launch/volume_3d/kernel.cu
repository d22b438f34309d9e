// A volume by a grid of three dimensions.
extern "C" __global__ void __launch_bounds__(32) volume_3d(const float* in, float* out, int width, int height, int depth) {
  const int x = blockIdx.x * 4 + threadIdx.x;
  const int y = blockIdx.y * 4 + threadIdx.y;
  const int z = blockIdx.z * 2 + threadIdx.z;
#if TWIN == 2
  const int plane = width * (height - 1);
#else
  const int plane = width * height;
#endif
#if TWIN == 1
  out -= blockIdx.z * width * height;
#endif
  if (x < width && y < height && z < depth) out[z * plane + y * width + x] = 2.0f * in[z * width * height + y * width + x];
}
