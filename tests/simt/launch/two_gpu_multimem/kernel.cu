// All-reduce of two GPUs over their multicast mappings: each GPU sums up one half of the copies and stores it to both.
#include "../ptx.cuh"

__device__ __forceinline__ int sum_of_copies(const int* word) {
  int sum;
  asm volatile("multimem.ld_reduce.weak.global.add.s32 %0, [%1];" : "=r"(sum) : "l"(word) : "memory");
  return sum;
}

__device__ __forceinline__ void store_to_copies(int* word, int value) {
  asm volatile("multimem.st.weak.global.s32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

__device__ __forceinline__ void alias_fence() { asm volatile("fence.proxy.alias;" ::: "memory"); }

__device__ __forceinline__ void meet(int* my_flag, int* their_flag, int round) {
  __syncthreads();
  if (threadIdx.x == 0) {
#if TWIN == 1
    store_relaxed_sys(their_flag, round);
#elif TWIN == 2
    store_release(their_flag, round);
#else
    store_release_sys(their_flag, round);
#endif
    while (load_acquire_sys(my_flag) < round) {}
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(32) two_gpu_multimem(int* mine, int* in_all, int* out, int* out_all, int* result, int* my_flag, int* their_flag, int rank) {
  const int i = threadIdx.x;
  mine[i] = i + rank;
#if TWIN != 4
  alias_fence();
#endif
  meet(my_flag, their_flag, 1);
  if (i / 16 == rank) store_to_copies(out_all + i, sum_of_copies(in_all + i));
#if TWIN != 3
  alias_fence();
#endif
  meet(my_flag, their_flag, 2);
  result[i] = out[i];
}
