// A histogram spread over a cluster: every thread adds to the bin of its value in the CTA that has it.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int threads = 128;
constexpr int bins = 64;
constexpr int ctas = 2;

extern "C" __global__ void __cluster_dims__(ctas, 1, 1) __launch_bounds__(threads) remote_bins(const unsigned* source, unsigned* counts, int each) {
  __shared__ unsigned bin[bins];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < bins) bin[threadIdx.x] = 0;
  cluster.sync();
  for (int k = 0; k < each; ++k) {
    const unsigned value = source[(size_t(blockIdx.x) * each + k) * threads + threadIdx.x];
    const unsigned place = value % (bins * ctas);
    unsigned* there = cluster.map_shared_rank(bin, place / bins);
    atomicAdd(there + place % bins, 1u);
  }
  cluster.sync();
  if (threadIdx.x < bins) atomicAdd(counts + cluster.block_rank() * bins + threadIdx.x, bin[threadIdx.x]);
}
