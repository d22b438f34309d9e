// Elements above zero are kept, in any order.
extern "C" __global__ void __launch_bounds__(32) compaction(const int* in, int* out, int* kept) {
  const int value = in[blockIdx.x * 32 + threadIdx.x];
  const unsigned chosen = __ballot_sync(0xffffffffu, value > 0);
  int place = 0;
#if TWIN == 1
  if (threadIdx.x == 0) place = atomicAdd(kept, __popc(chosen) - 1);
#elif TWIN == 2
  if (threadIdx.x == 0) place = *kept, *kept += __popc(chosen);
#else
  if (threadIdx.x == 0) place = atomicAdd(kept, __popc(chosen));
#endif
  place = __shfl_sync(0xffffffffu, place, 0) + __popc(chosen & ((1u << threadIdx.x) - 1));
  if (value > 0) out[place] = value;
}
