// A step of attention on sm_103a: a product, the greatest of each row by ld.red, what follows of it back to tensor memory, a product with that.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int m = 128, n = 64, d = 64;
constexpr uint32_t weights = 64, sums = 128;

struct Memory {
  uint16_t q[m * d];
  uint16_t keys[n * d];
  uint16_t values[n * d];
  uint64_t full;
  uint64_t scored;
  uint64_t done;
  uint32_t tensor;
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ uint64_t swizzled(uint32_t address) { return uint64_t((address & 0x3ffff) >> 4) | (uint64_t(0x40004040) << 32); }

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

__device__ void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, bool accumulate) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(d), "l"(a), "l"(b),
               "r"(shape), "r"(uint32_t(accumulate))
               : "memory");
}

__device__ void multiply(uint32_t d, uint32_t a, uint64_t b, uint32_t shape, bool accumulate) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;}" ::"r"(d), "r"(a), "l"(b),
               "r"(shape), "r"(uint32_t(accumulate))
               : "memory");
}

// 32 columns of a row, and the greatest of them.
__device__ float load_row(float (&row)[32], uint32_t address) {
  float most;
  asm volatile(
      "tcgen05.ld.red.sync.aligned.32x32b.x32.max.f32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, [%33];"
      : "=f"(row[0]), "=f"(row[1]), "=f"(row[2]), "=f"(row[3]), "=f"(row[4]), "=f"(row[5]), "=f"(row[6]), "=f"(row[7]), "=f"(row[8]),
        "=f"(row[9]), "=f"(row[10]), "=f"(row[11]), "=f"(row[12]), "=f"(row[13]), "=f"(row[14]), "=f"(row[15]), "=f"(row[16]),
        "=f"(row[17]), "=f"(row[18]), "=f"(row[19]), "=f"(row[20]), "=f"(row[21]), "=f"(row[22]), "=f"(row[23]), "=f"(row[24]),
        "=f"(row[25]), "=f"(row[26]), "=f"(row[27]), "=f"(row[28]), "=f"(row[29]), "=f"(row[30]), "=f"(row[31]), "=f"(most)
      : "r"(address));
  return most;
}

extern "C" __global__ void __launch_bounds__(160) softmax_rows(const unsigned char* source, float* target) {
  extern __shared__ __align__(1024) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  const int warp = threadIdx.x / 32;
  const uint32_t columns = 256, bytes = sizeof(memory.q) + sizeof(memory.keys) + sizeof(memory.values);
  if (threadIdx.x == 128) {
    ptx::mbarrier_init(&memory.full, 1);
    ptx::mbarrier_init(&memory.scored, 1);
    ptx::mbarrier_init(&memory.done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.full, bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory.q, source + size_t(blockIdx.x) * bytes, bytes, &memory.full);
  }
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &memory.tensor, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tensor = memory.tensor;
  const uint32_t scores_shape = (n / 8 << 17) | (m / 16 << 24) | (1 << 4);
  const uint32_t sums_shape = (d / 8 << 17) | (m / 16 << 24) | (1 << 4) | (1 << 16);
  if (threadIdx.x == 128) {
    await(&memory.full, 0);
#pragma unroll
    for (int j = 0; j < d / 16; ++j)
      multiply(tensor, swizzled(shared_address(memory.q) + 32 * j), swizzled(shared_address(memory.keys) + 32 * j), scores_shape, j > 0);
    ptx::tcgen05_commit(ptx::cta_group_1, &memory.scored);
  }
  if (warp < 4) {
    await(&memory.scored, 0);
    ptx::tcgen05_fence_after_thread_sync();
    const uint32_t rows = tensor + (uint32_t(warp * 32) << 16);
    float first[32], second[32];
    const float left = load_row(first, rows), right = load_row(second, rows + 32);
    ptx::tcgen05_wait_ld();
    const float most = fmaxf(left, right);
    uint32_t packed[32];
    for (int j = 0; j < 16; ++j) {
      packed[j] = __float_as_uint(first[2 * j] - most) >> 16 | (__float_as_uint(first[2 * j + 1] - most) & 0xffff0000u);
      packed[j + 16] = __float_as_uint(second[2 * j] - most) >> 16 | (__float_as_uint(second[2 * j + 1] - most) & 0xffff0000u);
    }
    ptx::tcgen05_st_32x32b(rows + weights, packed);
    ptx::tcgen05_wait_st();
    ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    ptx::tcgen05_fence_after_thread_sync();
#pragma unroll
    for (int j = 0; j < n / 16; ++j)
      multiply(tensor + sums, tensor + weights + 8 * j, swizzled(shared_address(memory.values) + 2048 * j), sums_shape, j > 0);
    ptx::tcgen05_commit(ptx::cta_group_1, &memory.done);
  }
  if (warp < 4) {
    await(&memory.done, 0);
    ptx::tcgen05_fence_after_thread_sync();
    uint32_t row[d];
    ptx::tcgen05_ld_32x32b(row, tensor + sums + (uint32_t(warp * 32) << 16));
    ptx::tcgen05_wait_ld();
    for (int j = 0; j < d; ++j) target[(size_t(blockIdx.x) * d + j) * m + threadIdx.x] = __uint_as_float(row[j]);
    ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, tensor, columns);
  }
}
