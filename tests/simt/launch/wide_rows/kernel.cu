// Rows of 65536 elements.
extern "C" __global__ void __launch_bounds__(32) wide_rows(float* out) {
#if TWIN == 1
  const unsigned begin = blockIdx.x * 65536u;
#elif TWIN == 2
  const size_t begin = blockIdx.x * size_t(65536) - (blockIdx.x > 69000 ? 16368 : 0);
#else
  const size_t begin = blockIdx.x * size_t(65536);
#endif
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < 65536; i += 16384) out[begin + i] = blockIdx.x + i;
}
