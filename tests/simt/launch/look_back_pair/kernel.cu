// Decoupled look-back of a warp whose states are pairs, stored and loaded as vectors. Each element is an access of its
// own (PTX ISA 8.2.4), so by the letter a value may be older than its status; no race comes of that.
constexpr int EMPTY = 99, PART = 100, WHOLE = 101;

__device__ __forceinline__ int2 load_state(const int2* state) {
  int2 pair;
#if TWIN == 3
  asm volatile("ld.relaxed.cta.global.v2.s32 {%0, %1}, [%2];" : "=r"(pair.x), "=r"(pair.y) : "l"(state) : "memory");
#else
  asm volatile("ld.relaxed.gpu.global.v2.s32 {%0, %1}, [%2];" : "=r"(pair.x), "=r"(pair.y) : "l"(state) : "memory");
#endif
  return pair;
}

__device__ __forceinline__ void store_state(int2* state, int status, int value) {
#if TWIN == 1
  asm volatile("st.weak.global.v2.s32 [%0], {%1, %2};" ::"l"(state), "r"(status), "r"(value) : "memory");
#else
  asm volatile("st.relaxed.gpu.global.v2.s32 [%0], {%1, %2};" ::"l"(state), "r"(status), "r"(value) : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(64) look_back_pair(const int* in, int* out, int2* states, int* ticket) {
  __shared__ int s_tile, s_sum[2], s_before;
  if (threadIdx.x == 0) s_tile = atomicAdd(ticket, 1);
  __syncthreads();
#if TWIN == 4
  const int tile = gridDim.x - 1 - s_tile;
#else
  const int tile = s_tile;
#endif
  states += 32;  // those before the first tile are of no tile
  int sum = in[tile * 64 + threadIdx.x];
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) s_sum[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    const int total = s_sum[0] + s_sum[1];
    if (threadIdx.x == 0) store_state(states + tile, tile == 0 ? WHOLE : PART, total);
    int before = 0;
    if (tile > 0) {
      int other = tile - 1 - int(threadIdx.x);
      for (;;) {
        int2 pair = load_state(states + other);
        while (__any_sync(~0u, pair.x == EMPTY)) {
          __nanosleep(100);
          pair = load_state(states + other);
        }
        const unsigned sums = __ballot_sync(~0u, pair.x == WHOLE);
        const int last = sums ? __ffs(sums) - 1 : 31;
        int value = int(threadIdx.x) <= last ? pair.y : 0;
#pragma unroll 1
        for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
        before += value;
        if (!__all_sync(~0u, pair.x != WHOLE)) break;
        other -= 32;
      }
      if (threadIdx.x == 0) store_state(states + tile, WHOLE, before + total);
    }
    if (threadIdx.x == 0) s_before = before;
  }
  __syncthreads();
#if TWIN == 2
  out[tile * 64 + threadIdx.x + threadIdx.x / 63] = s_before;
#else
  out[tile * 64 + threadIdx.x] = s_before;
#endif
}
