// All CTAs store the same value.
extern "C" __global__ void __launch_bounds__(32) same_value(int* touched) {
  if (threadIdx.x == 0) {
#if TWIN == 1
    *touched = blockIdx.x;
#else
    *touched = 1;
#endif
  }
}
