// Every CTA of a cluster adds its tile to that of the first one by a bulk reduction, which the first one's mbarrier counts.
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int ctas = 4;
constexpr int threads = 128;
constexpr int words = 256;

extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads) gather_reduce(const unsigned* source, unsigned* target) {
  __shared__ alignas(128) unsigned part[words];
  __shared__ alignas(128) unsigned total[words];
  __shared__ uint64_t full;
  auto cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < words; i += threads) {
    part[i] = source[size_t(blockIdx.x) * words + i] * 3;
    total[i] = 0;
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  cluster.sync();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.async;" ::: "memory");
    if (cluster.block_rank() == 0)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, ctas * sizeof(part));
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(total, 0), part, sizeof(part),
                              cluster.map_shared_rank(&full, 0));
  }
  if (cluster.block_rank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {}
    for (int i = threadIdx.x; i < words; i += threads) target[size_t(blockIdx.x / ctas) * words + i] = total[i];
  }
  cluster.sync();
}
