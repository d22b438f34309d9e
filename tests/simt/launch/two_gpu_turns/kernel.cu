// A word that goes to and fro between two GPUs: whose turn it is decides who may change it.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) take_turns(int* word, int* turn, int rank) {
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
#if TWIN == 1
      while (load_relaxed_sys(turn) != 2 * round + rank) {}
#else
      while (load_acquire_sys(turn) != 2 * round + rank) {}
#endif
#if TWIN == 2
      store_release_sys(turn, 2 * round + rank + 1);
      *word += 1;
#else
      *word += 1;
      store_release_sys(turn, 2 * round + rank + 1);
#endif
    }
    __syncthreads();
  }
}
