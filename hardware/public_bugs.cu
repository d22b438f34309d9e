// How often three bugs of public kernels (docs/public-bugs.md) give wrong values on a chip:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o public_bugs hardware/public_bugs.cu && ./public_bugs 200
// prints, for each variant, how many of so many results were wrong.
#include <cuda/pipeline>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int STAGES = 4, TILE = 256, TILES = 64;

// A ring of STAGES tiles, filled AHEAD rounds before they are read; a warp that is `slow` reads late. Two rounds ahead is right.
template <int AHEAD>
__global__ void __launch_bounds__(TILE) look_ahead(const float4 *in, float *out, int slow) {
  __shared__ float4 buf[STAGES][TILE];
  const int t = threadIdx.x;
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  float sum = 0;
  int fetched = 0;
  for (int k = 0; k < TILES; ++k) {
#pragma unroll 1
    for (; fetched < k + AHEAD; ++fetched) {
      pipe.producer_acquire();
      if (fetched < TILES) cuda::memcpy_async(&buf[fetched % STAGES][t], &in[fetched * TILE + t], cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<AHEAD - 1>(pipe);
    __syncthreads();
    if (slow && t / 32 == k % 8) __nanosleep(slow);
    sum += buf[k % STAGES][TILE - 1 - t].x;
    pipe.consumer_release();
  }
  out[blockIdx.x * TILE + t] = sum;
}

// Each block leaves its part and counts itself; the last one adds up all parts. FENCES: before and after the atomic.
template <int FENCES>
__global__ void last_block(float *parts, unsigned *count, float *total, float value) {
  __shared__ bool last;
  const int t = threadIdx.x, n = gridDim.x;
  parts[blockIdx.x * blockDim.x + t] = value;
  __syncthreads();
  if (t == 0) {
    if (FENCES) __threadfence();
    last = atomicInc(count, n - 1) == n - 1;
    if (FENCES) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int b = 0; b < n; ++b) sum += parts[b * blockDim.x + t];
  total[t] = sum;
}

// A word for each warp holds its greatest, then its sum; a warp that is `slow` reads the former late. BARRIER: in between.
template <int BARRIER>
__global__ void __launch_bounds__(TILE) reused_partials(float *out, int slow) {
  __shared__ float partial[TILE / 32];
  const int t = threadIdx.x, warp = t / 32;
  float greatest = 0, sum = 0;
  if (t % 32 == 0) partial[warp] = float(blockIdx.x % 100 + warp);
  __syncthreads();
  if (slow && warp == int(blockIdx.x % 8)) __nanosleep(slow);
  for (int k = 0; k < TILE / 32; ++k) greatest = fmaxf(greatest, partial[k]);
  if (BARRIER) __syncthreads();
  float of_warp = 1000;
  for (int apart = 16; apart; apart /= 2) of_warp += __shfl_xor_sync(0xffffffff, of_warp, apart);
  if (t % 32 == 0) partial[warp] = of_warp;
  __syncthreads();
  for (int k = 0; k < TILE / 32; ++k) sum += partial[k];
  out[blockIdx.x * TILE + t] = sum + greatest;
}

template <int BARRIER> void words(int repeats, int slow) {
  const int blocks = 528, warps = TILE / 32;
  float *out;
  cudaMalloc(&out, blocks * TILE * sizeof(float));
  std::vector<float> found(blocks * TILE);
  long wrong = 0, all = 0;
  for (int r = 0; r < repeats; ++r) {
    reused_partials<BARRIER><<<blocks, TILE>>>(out, slow);
    cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < blocks * TILE; ++i) wrong += found[i] != 32000.0f * warps + float(i / TILE % 100 + warps - 1), ++all;
  }
  printf("words used again, %d barriers, delay %d ns: %ld of %ld results wrong (%s)\n", BARRIER, slow, wrong, all,
         cudaGetErrorString(cudaGetLastError()));
  cudaFree(out);
}

template <int AHEAD> void ring(int repeats, int slow) {
  const int blocks = 528;
  std::vector<float4> host(TILES * TILE);
  for (int i = 0; i < TILES * TILE; ++i) host[i] = make_float4(float(i / TILE * 3 + i % 7), 0, 0, 0);
  float4 *in;
  float *out;
  cudaMalloc(&in, host.size() * sizeof(float4)), cudaMalloc(&out, blocks * TILE * sizeof(float));
  cudaMemcpy(in, host.data(), host.size() * sizeof(float4), cudaMemcpyHostToDevice);
  std::vector<float> found(blocks * TILE);
  long wrong = 0, all = 0;
  for (int r = 0; r < repeats; ++r) {
    look_ahead<AHEAD><<<blocks, TILE>>>(in, out, slow);
    cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < blocks * TILE; ++i) {
      float sum = 0;
      for (int k = 0; k < TILES; ++k) sum += host[k * TILE + TILE - 1 - i % TILE].x;
      wrong += found[i] != sum, ++all;
    }
  }
  printf("ring of %d stages, %d ahead, delay %d ns: %ld of %ld sums wrong (%s)\n", STAGES, AHEAD - 1, slow, wrong, all,
         cudaGetErrorString(cudaGetLastError()));
  cudaFree(in), cudaFree(out);
}

template <int FENCES> void reduction(int repeats) {
  const int blocks = 264, threads = 512;
  float *parts, *total;
  unsigned *count;
  cudaMalloc(&parts, blocks * threads * 4), cudaMalloc(&total, threads * 4), cudaMalloc(&count, 4), cudaMemset(count, 0, 4);
  std::vector<float> found(threads);
  long wrong = 0, all = 0;
  for (int r = 1; r <= repeats * 100; ++r) {
    last_block<FENCES><<<blocks, threads>>>(parts, count, total, float(r % 1000));
    cudaMemcpy(found.data(), total, threads * 4, cudaMemcpyDeviceToHost);
    for (float value : found) wrong += value != float(r % 1000) * blocks, ++all;
  }
  printf("last block of %d, %s: %ld of %ld sums wrong (%s)\n", blocks, FENCES ? "fences" : "no fence", wrong, all,
         cudaGetErrorString(cudaGetLastError()));
  cudaFree(parts), cudaFree(total), cudaFree(count);
}

int main(int argc, char **argv) {
  const int repeats = argc > 1 ? atoi(argv[1]) : 20;
  for (int slow : {0, 2000}) ring<3>(repeats, slow), ring<4>(repeats, slow), ring<5>(repeats, slow);
  for (int slow : {0, 2000}) words<0>(repeats, slow), words<1>(repeats, slow);
  reduction<0>(repeats), reduction<1>(repeats);
}
