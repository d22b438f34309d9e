// Two kernels, the second launched early.
extern "C" __global__ void __launch_bounds__(32) first(int* x) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  x[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(32) second(const int* x, int* y) {
#if TWIN == 2
  const int value = x[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
#endif
#if TWIN != 1
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#if TWIN != 2
  const int value = x[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
#endif
  y[blockIdx.x * 32 + threadIdx.x] = value;
}
