// A tile goes round a cluster: each CTA sends its own by a bulk copy into its neighbour's shared memory.
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int threads = 128;

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {}
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(threads) bulk_to_peer(const float* source, float* target) {
  __shared__ alignas(128) float mine[threads];
  __shared__ alignas(128) float received[threads];
  __shared__ uint64_t full;
  auto cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(received));
  }
  mine[threadIdx.x] = source[blockIdx.x * threads + threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  cluster.sync();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(&received[0], next), mine, sizeof(mine),
                       cluster.map_shared_rank(&full, next));
  }
  await(&full, 0);
  target[blockIdx.x * threads + threadIdx.x] = mine[threadIdx.x] + received[threadIdx.x];
  cluster.sync();
}
