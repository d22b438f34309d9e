// Lanes without a choice store to the last place.
extern "C" __global__ void __launch_bounds__(32) default_place(const int* choice, int* out) {
  int place = 31;
  if (threadIdx.x >= 15) place = choice[threadIdx.x] & 31;
#if TWIN == 1
  out[blockIdx.x * 31 + place] = blockIdx.x;
#else
  out[blockIdx.x * 32 + place] = blockIdx.x;
#endif
}
