// The product of an Ampere kernel: cp.async three stages deep, ldmatrix, mma.sync.
#include <cuda_fp16.h>
#include <cstdint>

constexpr int stages = 3;
constexpr int threads = 128;
constexpr int side = 64;   // of the tile of c
constexpr int depth = 32;  // of a stage
constexpr int pitch = 40;  // halves to a row of a or of the turned b: 16-byte rows on different banks

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ void fetch(__half (&target)[side * pitch], const __half* source, int stride) {
  for (int i = threadIdx.x; i < side * depth / 8; i += threads)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&target[i / 4 * pitch + i % 4 * 8])),
                 "l"(source + size_t(i / 4) * stride + i % 4 * 8)
                 : "memory");
}

__device__ void fragment(uint32_t (&r)[4], const __half* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(from)));
}

// c = a * b^T for a of M x K and b of N x K.
extern "C" __global__ void __launch_bounds__(threads) mma_cp_async(const __half* a, const __half* b, float* c, int n, int k) {
  __shared__ alignas(16) __half sa[stages][side * pitch];
  __shared__ alignas(16) __half sb[stages][side * pitch];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  a += size_t(blockIdx.y) * side * k;
  b += size_t(blockIdx.x) * side * k;
  float sum[8][4] = {};
  const int steps = k / depth;
  for (int t = 0; t < stages - 1; ++t) {
    if (t < steps) {
      fetch(sa[t], a + t * depth, k);
      fetch(sb[t], b + t * depth, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int t = 0; t < steps; ++t) {
    asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
    __syncthreads();
    const int s = t % stages;
    const int next = t + stages - 1;
    if (next < steps) {
      fetch(sa[next % stages], a + next * depth, k);
      fetch(sb[next % stages], b + next * depth, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int kk = 0; kk < depth; kk += 16) {
      uint32_t fa[4];
      fragment(fa, &sa[s][(warp * 16 + lane % 16) * pitch + kk + lane / 16 * 8]);
      for (int j = 0; j < 4; ++j) {
        uint32_t fb[4];
        fragment(fb, &sb[s][(j * 16 + lane % 16) * pitch + kk + lane / 16 * 8]);
        for (int h = 0; h < 2; ++h)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(sum[2 * j + h][0]), "+f"(sum[2 * j + h][1]), "+f"(sum[2 * j + h][2]), "+f"(sum[2 * j + h][3])
                       : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[h]), "r"(fb[2 + h]));
      }
    }
  }
  const int row = blockIdx.y * side + warp * 16 + lane / 4;
  for (int j = 0; j < 8; ++j) {
    const int column = blockIdx.x * side + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&c[size_t(row) * n + column]) = make_float2(sum[j][0], sum[j][1]);
    *reinterpret_cast<float2*>(&c[size_t(row + 8) * n + column]) = make_float2(sum[j][2], sum[j][3]);
  }
}
