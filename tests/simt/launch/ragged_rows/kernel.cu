// Rows of different lengths.
extern "C" __global__ void __launch_bounds__(32) ragged_rows(const int* begins, float* out) {
  const int begin = begins[blockIdx.x];
  const int end = begins[blockIdx.x + 1];
#if TWIN == 1
#pragma unroll 1
  for (int i = begin + threadIdx.x; i <= end; i += 32) out[i] = blockIdx.x;
#else
#pragma unroll 1
  for (int i = begin + threadIdx.x; i < end; i += 32) out[i] = blockIdx.x;
#endif
}
