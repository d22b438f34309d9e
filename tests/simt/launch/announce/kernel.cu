// At most one of two CTAs goes on: store buffering, forbidden by fence.sc.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) announce(int* owner, int* present) {
  if (threadIdx.x == 0) {
    store_relaxed(present + blockIdx.x, 1);
#if TWIN == 1
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif TWIN == 2
    asm volatile("fence.sc.cta;" ::: "memory");
#else
    asm volatile("fence.sc.gpu;" ::: "memory");
#endif
    if (load_relaxed(present + 1 - blockIdx.x) == 0) *owner = blockIdx.x;
  }
}
