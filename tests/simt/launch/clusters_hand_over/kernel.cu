// A cluster hands a tile to another cluster.
#include <cooperative_groups.h>
#include "../ptx.cuh"
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32) clusters_hand_over(int* tile, int* out, int* flag) {
  const cg::cluster_group cluster = cg::this_cluster();
  const int rank = cluster.block_rank();
  if (blockIdx.x < 2) {
    tile[rank * 32 + threadIdx.x] = rank;
#if TWIN == 1
    __syncthreads();
#else
    cluster.sync();
#endif
#if TWIN == 2
    if (rank == 0 && threadIdx.x == 0) store_release_cluster(flag, 1);
#else
    if (rank == 0 && threadIdx.x == 0) store_release(flag, 1);
#endif
  } else {
    if (rank == 0 && threadIdx.x == 0)
      while (load_acquire(flag) == 0) {}
    cluster.sync();
    out[rank * 32 + threadIdx.x] = tile[(1 - rank) * 32 + threadIdx.x];
  }
}
