// A sum of a block by cub::BlockReduce, its storage used for a maximum after a barrier.
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void __launch_bounds__(128) cub_reduce(const float* in, float* sums, float* maxima, int n) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float x = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) x += in[i];
  float sum = Reduce(storage).Sum(x);
  __syncthreads();
  float most = Reduce(storage).Reduce(x, cuda::maximum<>{});
  if (threadIdx.x == 0) { sums[blockIdx.x] = sum; maxima[blockIdx.x] = most; }
}
