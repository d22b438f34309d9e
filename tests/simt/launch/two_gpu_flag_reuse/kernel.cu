// One flag and one answer between two GPUs, used in every round.
#include "../ptx.cuh"

#define ROUNDS 2

extern "C" __global__ void __launch_bounds__(32) send(int* box, int* flag, int* answer) {
  for (int round = 0; round < ROUNDS; ++round) {
    box[threadIdx.x] = round + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      store_release_sys(flag, 1);
      while (load_acquire_sys(answer) == 0) {}
      store_relaxed_sys(answer, 0);
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(32) receive(const int* box, int* out, int* flag, int* answer) {
  for (int round = 0; round < ROUNDS; ++round) {
    if (threadIdx.x == 0)
      while (load_acquire_sys(flag) == 0) {}
    __syncthreads();
    out[32 * round + threadIdx.x] = box[31 - threadIdx.x];
#if TWIN != 2
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
#if TWIN == 1
      store_release_sys(answer, 1);
      store_relaxed_sys(flag, 0);
#else
      store_relaxed_sys(flag, 0);
      store_release_sys(answer, 1);
#endif
    }
  }
}
