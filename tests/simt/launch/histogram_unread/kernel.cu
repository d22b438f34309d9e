// A histogram by atomics.
extern "C" __global__ void __launch_bounds__(64) histogram_unread(const int* keys, int* bins) {
  int* bin = bins + (keys[blockIdx.x * 64 + threadIdx.x] & 15);
#if TWIN == 1
  atomicAdd_block(bin, 1);
#elif TWIN == 2
  *bin += 1;
#else
  atomicAdd(bin, 1);
#endif
}
