// Slices of K are added to a tile by atomics.
extern "C" __global__ void __launch_bounds__(64) split_k_atomics(const float* partial, float* tiles) {
  const float value = partial[(blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.x];
  float* element = tiles + blockIdx.x * 64 + threadIdx.x;
#if TWIN == 1
  if (blockIdx.y == 0)
    *element = value;
  else
    atomicAdd(element, value);
#elif TWIN == 2
  *element += value;
#else
  atomicAdd(element, value);
#endif
}
