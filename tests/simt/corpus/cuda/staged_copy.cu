// cooperative_groups::memcpy_async in two halves of a double buffer, wait_prior, and a tile of warps that reads across.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) staged_copy(const int* source, int* target, int rounds) {
  __shared__ alignas(16) int buffer[2][threads * 4];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  source += size_t(blockIdx.x) * rounds * threads * 4;
  cg::memcpy_async(block, buffer[0], source, cuda::aligned_size_t<16>(sizeof(buffer[0])));
  int sum = 0;
  for (int k = 0; k < rounds; ++k) {
    if (k + 1 < rounds) {
      cg::memcpy_async(block, buffer[(k + 1) & 1], source + size_t(k + 1) * threads * 4, cuda::aligned_size_t<16>(sizeof(buffer[0])));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    const int* now = buffer[k & 1];
    sum += cg::reduce(warp, now[threads * 4 - 1 - threadIdx.x], cg::plus<int>());
    block.sync();
  }
  if (warp.thread_rank() == 0) target[blockIdx.x * (threads / 32) + warp.meta_group_rank()] = sum;
}
