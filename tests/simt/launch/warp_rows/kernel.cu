// Persistent warps: each draws rows of its own, and turns them around in a part of shared memory that is its own.
extern "C" __global__ void __launch_bounds__(128) warp_rows(const float* in, const float* scale, float* out, unsigned* next, int rows) {
  __shared__ float factor[32];
  __shared__ float part[4][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 32) factor[lane] = scale[lane];
#if TWIN != 1
  __syncthreads();
#endif
#pragma unroll 1
  for (;;) {
    unsigned row = 0;
    if (lane == 0) row = atomicAdd(next, 1u);
    row = __shfl_sync(0xffffffffu, row, 0);
    if (row >= rows) return;
    part[warp][lane] = in[row * 32 + lane] * factor[lane];
    __syncwarp();
#if TWIN == 3
    const float value = part[(warp + 1) % 4][31 - lane];
#else
    const float value = part[warp][31 - lane];
#endif
#if TWIN != 2
    __syncwarp();
#endif
    out[row * 32 + lane] = value;
  }
}
