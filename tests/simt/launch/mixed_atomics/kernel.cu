// All threads of all CTAs update eight words in eight ways, several times. Nobody reads a word or a result.
extern "C" __global__ void __launch_bounds__(128) mixed_atomics(unsigned* words, int rounds) {
  unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
#if TWIN == 2
  if (threadIdx.x == 0) words[7] = 0;
  __syncthreads();
#endif
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
#if TWIN == 1
    atomicAdd_block(words, 10);
#else
    atomicAdd(words, 10);
#endif
    atomicExch(words + 1, me);
    atomicMax(words + 2, me);
    atomicInc(words + 3, 17);
    atomicCAS(words + 4, me - 1, me);
    atomicAnd(words + 5, 2 * me + 7);
    atomicXor_system(words + 6, me);
  }
  atomicOr(words + 7, me);
}
