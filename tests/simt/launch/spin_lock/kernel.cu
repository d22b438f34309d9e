// A lock around an ordinary word.
extern "C" __global__ void __launch_bounds__(32) spin_lock(const int* in, int* total, int* lock) {
  if (threadIdx.x == 0) {
    const int value = in[blockIdx.x];
    while (atomicCAS(lock, 0, 1) != 0) {}
#if TWIN != 2
    __threadfence();
#endif
    *total += value;
#if TWIN == 1
    atomicExch(lock, 0);
#elif TWIN == 3
    __threadfence();
    if (value != 0) atomicExch(lock, 0);
#elif TWIN == 4
    __threadfence_block();
    atomicExch(lock, 0);
#else
    __threadfence();
    atomicExch(lock, 0);
#endif
  }
}
