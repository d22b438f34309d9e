// One byte a thread, 51 threads a CTA.
extern "C" __global__ void __launch_bounds__(51) byte_mask(const float* in, unsigned char* mask) {
  const int i = blockIdx.x * 51 + threadIdx.x;
#if TWIN == 1
  if (in[i] > 0) reinterpret_cast<unsigned*>(mask)[i / 4] |= 1u << (i % 4 * 8);
#elif TWIN == 2
  mask[i] = mask[i + 1] + 1;
#else
  mask[i] = in[i] > 0;
#endif
}
