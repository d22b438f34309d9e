// st.async: each thread sends a value a round to the next CTA of the cluster, whose mbarrier counts the bytes.
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int threads = 64;

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {}
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(threads) st_async(const int* source, int* target, int rounds) {
  __shared__ alignas(16) int box[2][threads];
  __shared__ uint64_t full[2];
  auto cluster = cg::this_cluster();
  const unsigned other = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full[0], 1);
    ptx::mbarrier_init(&full[1], 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  int* remote_box = cluster.map_shared_rank(&box[0][0], other);
  uint64_t* remote_full = cluster.map_shared_rank(&full[0], other);
  int value = source[blockIdx.x * threads + threadIdx.x];
  for (int k = 0; k < rounds; ++k) {
    const int s = k & 1;
    if (threadIdx.x == 0)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], sizeof(box[s]));
    ptx::st_async(remote_box + s * threads + threadIdx.x, value, remote_full + s);
    await(&full[s], (k >> 1) & 1);
    value += box[s][(threadIdx.x + 1) % threads];
    cluster.sync();
  }
  target[blockIdx.x * threads + threadIdx.x] = value;
}
