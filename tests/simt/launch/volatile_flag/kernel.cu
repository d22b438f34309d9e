// A flag in volatile memory.
extern "C" __global__ void __launch_bounds__(32) volatile_flag(int* tile, int* out, volatile int* flag, int* ticket) {
  __shared__ int drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1);
  __syncthreads();
  if (drawn == 0) {
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
#if TWIN == 2
      __threadfence_block();
#elif TWIN != 1
      __threadfence();
#endif
      *flag = 1;
    }
  } else {
    if (threadIdx.x == 0) {
      while (*flag == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[drawn * 32 + threadIdx.x] = tile[threadIdx.x];
  }
}
