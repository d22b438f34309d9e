// Peterson's lock for two CTAs.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) peterson(int* total, int* wants, int* turn) {
  if (threadIdx.x == 0) {
    const int other = 1 - blockIdx.x;
    store_relaxed(wants + blockIdx.x, 1);
#if TWIN == 1
    exchange_relaxed(turn, other);
#elif TWIN == 3
    exchange_acq_rel(turn, 1 - other);
#else
    exchange_acq_rel(turn, other);
#endif
    while (load_acquire(wants + other) == 1 && load_acquire(turn) == other) {}
    *total += blockIdx.x + 1;
#if TWIN == 2
    store_relaxed(wants + blockIdx.x, 0);
#elif TWIN == 4
    store_release(wants + other, 0);
#else
    store_release(wants + blockIdx.x, 0);
#endif
  }
}
