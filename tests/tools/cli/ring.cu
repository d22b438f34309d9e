#include <cuda_runtime.h>
#include <cstdio>
constexpr int STAGES = 3, TILE = 128;
template <int N> __device__ void wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
__device__ void cp16(void *s, const void *g) {
  unsigned a = (unsigned)__cvta_generic_to_shared(s);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(g) : "memory");
}
__global__ void ring(const float4 *in, float *out, int tiles) {
  __shared__ float4 buf[STAGES][TILE];
  int t = threadIdx.x;
  float acc = 0;
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) cp16(&buf[s][t], &in[s * TILE + t]);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int k = 0; k < tiles; ++k) {
    wait<2>();
    __syncthreads();
    acc += buf[k % STAGES][TILE - 1 - t].x;
    int n = k + STAGES - 1;
    if (n < tiles) cp16(&buf[n % STAGES][t], &in[n * TILE + t]);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  out[t] = acc;
}
int main() {
  float4 *in; float *out;
  cudaMalloc(&in, 8 * TILE * sizeof(float4)); cudaMalloc(&out, TILE * 4);
  ring<<<1, TILE>>>(in, out, 8);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
