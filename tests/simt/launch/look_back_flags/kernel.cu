// A scan that chains prefixes behind flags.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) look_back_flags(const int* in, int* out, int* prefixes, int* flags, int* ticket) {
  int tile = 0;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  tile = __shfl_sync(0xffffffffu, tile, 0);
  int sum = in[tile * 32 + threadIdx.x];
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  int before = 0;
  if (threadIdx.x == 0) {
    if (tile > 0) {
#if TWIN == 2
      while (load_relaxed(flags + tile - 1) == 0) {}
#else
      while (load_relaxed(flags + tile - 1) == 0) {}
      __threadfence();
#endif
      before = prefixes[tile - 1];
    }
#if TWIN == 3
    store_relaxed(flags + tile, 1);
    __threadfence();
    prefixes[tile] = before + sum;
#else
    prefixes[tile] = before + sum;
#if TWIN != 1
    __threadfence();
#endif
    store_relaxed(flags + tile, 1);
#endif
  }
  before = __shfl_sync(0xffffffffu, before, 0);
  out[tile * 32 + threadIdx.x] = before;
}
