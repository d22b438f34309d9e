// Decoupled look-back: status and value are one word, so that no fence is needed.
__device__ __forceinline__ unsigned long long load_state(const unsigned long long* state) {
  unsigned long long word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state) : "memory");
  return word;
}

__device__ __forceinline__ void store_state(unsigned long long* state, unsigned long long status, int value) {
#if TWIN == 2
  asm volatile("st.weak.global.u64 [%0], %1;" ::"l"(state), "l"(status << 32 | unsigned(value)) : "memory");
#else
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(status << 32 | unsigned(value)) : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(32) look_back(const int* in, int* out, unsigned long long* states, int* ticket) {
  int tile = 0;
  if (threadIdx.x == 0) {
    tile = atomicAdd(ticket, 1);
#if TWIN == 1
    tile = gridDim.x - 1 - tile;
#endif
  }
  tile = __shfl_sync(0xffffffffu, tile, 0);
  int sum = in[tile * 32 + threadIdx.x];
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  int before = 0;
  if (threadIdx.x == 0) {
    store_state(states + tile, tile == 0 ? 2 : 1, sum);
#pragma unroll 1
    for (int other = tile - 1; other >= 0; --other) {
      unsigned long long word;
      do word = load_state(states + other);
      while (word >> 32 == 0);
      before += int(word);
      if (word >> 32 == 2) break;
    }
    if (tile > 0) store_state(states + tile, 2, before + sum);
  }
  before = __shfl_sync(0xffffffffu, before, 0);
  out[tile * 32 + threadIdx.x] = before;
}
