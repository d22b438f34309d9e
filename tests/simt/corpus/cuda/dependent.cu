// A dependent launch: the prologue runs early, what the kernel before wrote is read after griddepcontrol.wait.
constexpr int threads = 128;

extern "C" __global__ void __launch_bounds__(threads) dependent(const float* source, float* target, float factor) {
  __shared__ float tile[threads];
  const int index = blockIdx.x * threads + threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  tile[threadIdx.x] = source[index];
  __syncthreads();
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  target[index] = factor * tile[threads - 1 - threadIdx.x];
}
