// Two locks and two words.
__device__ __forceinline__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
}

__device__ __forceinline__ void leave(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" __global__ void __launch_bounds__(32) two_locks(int* words, int* locks) {
  if (threadIdx.x == 0) {
#if TWIN == 1
    const int one = blockIdx.x & 1;
#else
    const int one = 0;
#endif
    take(locks + one);
#if TWIN != 2
    take(locks + 1 - one);
#else
    if (blockIdx.x == 0) take(locks + 1 - one);
    leave(locks + one);
#endif
    words[1] += blockIdx.x + 1;
    leave(locks + 1 - one);
#if TWIN != 2
    words[0] += blockIdx.x + 1;
    leave(locks + one);
#endif
  }
}
