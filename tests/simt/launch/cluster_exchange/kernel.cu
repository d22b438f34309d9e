// The CTAs of a cluster exchange tiles through distributed shared memory.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32) cluster_exchange(const int* in, int* out) {
  __shared__ int part[32];
  const cg::cluster_group cluster = cg::this_cluster();
  const int i = blockIdx.x * 32 + threadIdx.x;
  part[threadIdx.x] = in[i];
#if TWIN != 1
  cluster.sync();
#endif
  const int* other = cluster.map_shared_rank(part, cluster.block_rank() ^ 1);
  const int value = other[threadIdx.x];
#if TWIN == 2
  out[(blockIdx.x / 2) * 32 + threadIdx.x] = value;
#else
  out[i] = value;
#endif
  cluster.sync();
}
