// Two kernels, one after the other.
extern "C" __global__ void __launch_bounds__(32) first(int* x) {
  x[blockIdx.x * 32 + threadIdx.x] = blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(32) second(const int* x, int* y) {
  y[blockIdx.x * 32 + threadIdx.x] = x[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
#if TWIN == 1
  y[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x] = 0;
#endif
}
