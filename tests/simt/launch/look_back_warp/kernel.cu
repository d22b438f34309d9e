// Decoupled look-back of a warp: each lane looks at one of 32 tiles before; the nearest sum of all ends it.
// An address of a state is only formed for tiles that there are.
__device__ __forceinline__ unsigned long long load_state(const unsigned long long* state) {
  unsigned long long word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state) : "memory");
  return word;
}

__device__ __forceinline__ void store_state(unsigned long long* state, unsigned long long status, int value) {
#if TWIN == 1
  asm volatile("st.weak.global.u64 [%0], %1;" ::"l"(state), "l"(status << 32 | unsigned(value)) : "memory");
#elif TWIN == 2
  asm volatile("st.relaxed.cta.global.u64 [%0], %1;" ::"l"(state), "l"(status << 32 | unsigned(value)) : "memory");
#else
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(status << 32 | unsigned(value)) : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(64)
    look_back_warp(const int* in, int* out, unsigned long long* states, int* ticket) {
  __shared__ int s_tile, s_sum[2], s_before;
  if (threadIdx.x == 0) s_tile = atomicAdd(ticket, 1);
  __syncthreads();
  int tile = s_tile;
#if TWIN == 3
  tile = gridDim.x - 1 - tile;
#endif
  int sum = in[tile * 64 + threadIdx.x];
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) s_sum[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    int total = s_sum[0] + s_sum[1];
    if (threadIdx.x == 0) store_state(states + tile, tile == 0 ? 2 : 1, total);
    int before = 0;
    if (tile > 0) {
      int other = tile - 1 - int(threadIdx.x);
      for (;;) {
        unsigned long long word;
        do {
          word = other >= 0 ? load_state(states + other) : 2ull << 32;
        } while (__any_sync(~0u, word >> 32 == 0));
        unsigned sums = __ballot_sync(~0u, word >> 32 == 2);
        int last = sums ? __ffs(sums) - 1 : 31;
        int value = int(threadIdx.x) <= last ? int(word) : 0;
#pragma unroll 1
        for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
        before += value;
        if (sums) break;
        other -= 32;
      }
      if (threadIdx.x == 0) store_state(states + tile, 2, before + total);
    }
    if (threadIdx.x == 0) s_before = before;
  }
  __syncthreads();
#if TWIN == 4
  out[tile * 64 + threadIdx.x + threadIdx.x / 63] = s_before;
#else
  out[tile * 64 + threadIdx.x] = s_before;
#endif
}
