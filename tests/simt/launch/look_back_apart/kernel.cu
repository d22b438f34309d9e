// Decoupled look-back where flags and values lie apart: a flag says whether the sum of a tile is there, or that of all
// tiles up to it. Fences order each value before its flag, and each flag before the value that it announces.
#include "../ptx.cuh"
constexpr int PART = 1, WHOLE = 2;

__device__ __forceinline__ void store_flag(int* flag, int status) {
#if TWIN == 2
  store_release_cta(flag, status);
#elif TWIN == 1
  store_relaxed(flag, status);
#else
  store_release(flag, status);
#endif
}

extern "C" __global__ void __launch_bounds__(32)
    look_back_apart(const double2* in, double2* out, int* flags, double2* parts, double2* wholes, int* ticket) {
  int tile = 0;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  tile = __shfl_sync(~0u, tile, 0);
  double2 before = {0, 0};
  if (threadIdx.x == 0) {
    double2 sum = in[tile];
    if (tile > 0) {
#if TWIN == 5
      store_flag(flags + tile, PART);
      parts[tile] = sum;
#else
      parts[tile] = sum;
      store_flag(flags + tile, PART);
#endif
#pragma unroll 1
      for (int other = tile - 1; other >= 0; --other) {
        int flag;
        do flag = load_relaxed(flags + other);
        while (flag == 0);
#if TWIN != 3
        __threadfence();
#endif
#if TWIN == 4
        double2 value = flag == WHOLE ? parts[other] : wholes[other];
#else
        double2 value = flag == PART ? parts[other] : wholes[other];
#endif
        before.x += value.x;
        before.y += value.y;
        if (flag == WHOLE) break;
      }
    }
    wholes[tile] = {before.x + sum.x, before.y + sum.y};
    store_flag(flags + tile, WHOLE);
    out[tile] = before;
  }
}
