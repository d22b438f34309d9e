// A dependent kernel reuses a buffer that the kernel before reads.
extern "C" __global__ void __launch_bounds__(32) first(const int* x, int* y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  y[i] = x[i] + 1;
}

extern "C" __global__ void __launch_bounds__(32) second(int* x, int* y, int* z) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  z[i] = i;
#if TWIN == 1
  x[i] = 0;
#endif
#if TWIN == 2
  y[i] = 0;
#endif
  asm volatile("griddepcontrol.wait;" ::: "memory");
#if TWIN != 1
  x[i] = 0;
#endif
  z[i] += y[i];
}
