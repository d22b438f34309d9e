// Softmax of the rows of a matrix.
constexpr unsigned lanes = 0xffffffffu;

extern "C" __global__ void __launch_bounds__(64) row_softmax(const float* in, float* out, int columns) {
  __shared__ float part[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* row = in + blockIdx.x * columns;
  float top = -3.0e38f;
#pragma unroll 1
  for (int i = threadIdx.x; i < columns; i += 64) top = fmaxf(top, row[i]);
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(lanes, top, d));
  if (lane == 0) part[warp] = top;
  __syncthreads();
  top = fmaxf(part[0], part[1]);
#if TWIN != 2
  __syncthreads();
#endif
  float sum = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < columns; i += 64) sum += exp2f(row[i] - top);
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(lanes, sum, d);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = part[0] + part[1];
#if TWIN == 1
  out += blockIdx.x * (columns - 1);
#else
  out += blockIdx.x * columns;
#endif
#pragma unroll 1
  for (int i = threadIdx.x; i < columns; i += 64) out[i] = exp2f(row[i] - top) / sum;
}
