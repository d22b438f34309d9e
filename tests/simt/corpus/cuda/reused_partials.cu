// The greatest of a row and the sum of what is above it, both by way of one word for each warp.
constexpr int THREADS = 128;
constexpr unsigned ALL = 0xffffffff;

__device__ float greatest_of_warp(float own) {
  for (int apart = 16; apart; apart /= 2) own = fmaxf(own, __shfl_xor_sync(ALL, own, apart));
  return own;
}

__device__ float sum_of_warp(float own) {
  for (int apart = 16; apart; apart /= 2) own += __shfl_xor_sync(ALL, own, apart);
  return own;
}

extern "C" __global__ void reused_partials(float *out, const float *in) {
  __shared__ float partial[THREADS / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, at = blockIdx.x * THREADS + threadIdx.x;
  const float own = in[at];
  float found = greatest_of_warp(own);
  if (lane == 0) partial[warp] = found;
  __syncthreads();
  float greatest = partial[0];
  for (int k = 1; k < THREADS / 32; ++k) greatest = fmaxf(greatest, partial[k]);
  __syncthreads();  // the words are used again
  found = sum_of_warp(own - greatest);
  if (lane == 0) partial[warp] = found;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < THREADS / 32; ++k) sum += partial[k];
  out[at] = own - greatest - sum;
}
