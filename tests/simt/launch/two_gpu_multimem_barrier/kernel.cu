// The barrier of the CUDA programming guide: both GPUs add to all copies of a word, each waits for its own copy.
#include "../ptx.cuh"

__device__ __forceinline__ void signal_all(int* all) {
#if TWIN == 1
  asm volatile("multimem.red.release.gpu.global.add.u32 [%0], 1;" ::"l"(all) : "memory");
#elif TWIN == 2
  asm volatile("multimem.st.weak.global.s32 [%0], 2;" ::"l"(all) : "memory");
#else
  asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(all) : "memory");
#endif
}

__device__ __forceinline__ void meet(int* all, int* mine) {
  __syncthreads();
  if (threadIdx.x == 0) {
    signal_all(all);
#if TWIN != 3
    asm volatile("fence.proxy.alias;" ::: "memory");
#endif
    while (load_acquire_sys(mine) < 2) {}
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(32) two_gpu_multimem_barrier(int* words, int* out, int* all, int* mine, int rank) {
  words[32 * rank + threadIdx.x] = rank;
  meet(all, mine);
  out[threadIdx.x] = words[32 * (1 - rank) + threadIdx.x];
}
