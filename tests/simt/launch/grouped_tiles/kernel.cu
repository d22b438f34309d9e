// Tiles of 8 by 8 in groups of rows.
constexpr int tile = 8, group = 2;

extern "C" __global__ void __launch_bounds__(64) grouped_tiles(const float* in, float* out, int tiles_m, int tiles_n) {
#if TWIN == 2
  const int per_group = group * tiles_n - 1;
#else
  const int per_group = group * tiles_n;
#endif
  const int first = blockIdx.x / per_group * group;
  const int size = min(tiles_m - first, group);
  const int in_group = blockIdx.x % per_group;
  const int m = first + in_group % size;
#if TWIN == 1
  const int n = in_group / group;
#else
  const int n = in_group / size;
#endif
  const int at = (m * tile + threadIdx.x / tile) * tiles_n * tile + n * tile + threadIdx.x % tile;
  out[at] = 2.0f * in[blockIdx.x * 64 + threadIdx.x];
}
