// A CTA writes into the shared memory of the other one and arrives at its mbarrier; generic accesses and orders of the cluster only.
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int threads = 64;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(threads) remote_write(const int* source, int* target, int rounds) {
  __shared__ int box[2][threads];
  __shared__ uint64_t full[2], empty[2];
  auto cluster = cg::this_cluster();
  const unsigned other = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      ptx::mbarrier_init(&full[s], threads);
      ptx::mbarrier_init(&empty[s], threads);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  int value = source[blockIdx.x * threads + threadIdx.x];
  for (int k = 0; k < rounds; ++k) {
    const int s = k & 1;
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &empty[s], ((k >> 1) & 1) ^ 1)) {}
    cluster.map_shared_rank(&box[s][0], other)[threadIdx.x] = value;
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&full[s], other));
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full[s], (k >> 1) & 1)) {}
    value += box[s][threads - 1 - threadIdx.x];
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&empty[s], other));
  }
  target[blockIdx.x * threads + threadIdx.x] = value;
  cluster.sync();
}
