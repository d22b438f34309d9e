// Tiles loaded transposed, scanned and stored by CUB, one union of storage for the three.
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
extern "C" __global__ void __launch_bounds__(128) cub_scan(const int* in, int* out, int tiles) {
  using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 128>;
  __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; } s;
  int carry = 0;
  for (int t = 0; t < tiles; ++t) {
    int items[4], total;
    size_t at = ((size_t)blockIdx.x * tiles + t) * 512;
    Load(s.load).Load(in + at, items);
    __syncthreads();
    Scan(s.scan).InclusiveSum(items, items, total);
    __syncthreads();
    for (int& i : items) i += carry;
    carry += total;
    Store(s.store).Store(out + at, items);
    __syncthreads();
  }
}
