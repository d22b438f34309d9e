// Two phases with grid.sync between them.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __launch_bounds__(32) cooperative_sync(int* data, int* out) {
  const cg::grid_group grid = cg::this_grid();
  data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
#if TWIN == 1
  __syncthreads();
#elif TWIN == 2
  if (blockIdx.x == 0) return;
  grid.sync();
#else
  grid.sync();
#endif
  out[blockIdx.x * 32 + threadIdx.x] = data[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
}
