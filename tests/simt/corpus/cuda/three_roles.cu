// Three roles, three stages: one thread fetches tiles, four warps scale them in place, another thread sends them away.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

constexpr int stages = 3;
constexpr int floats = 512;
constexpr int workers = 128;

struct Memory {
  alignas(128) float tile[stages][floats];
  uint64_t fetched[stages];
  uint64_t scaled[stages];
  uint64_t sent[stages];
};

__device__ void await(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {}
}

struct Place {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

extern "C" __global__ void __launch_bounds__(workers + 64) three_roles(const float* source, float* target, int tiles, float factor) {
  extern __shared__ __align__(128) unsigned char storage[];
  Memory& memory = *reinterpret_cast<Memory*>(storage);
  if (threadIdx.x == workers) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&memory.fetched[s], 1);
      ptx::mbarrier_init(&memory.scaled[s], workers);
      ptx::mbarrier_init(&memory.sent[s], 1);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  Place at;
  if (threadIdx.x < workers) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, at.next()) {
      await(&memory.fetched[at.stage], at.phase);
      for (int i = threadIdx.x; i < floats; i += workers) memory.tile[at.stage][i] *= factor;
      ptx::fence_proxy_async(ptx::space_shared);
      ptx::mbarrier_arrive(&memory.scaled[at.stage]);
    }
  } else if (threadIdx.x == workers) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, at.next()) {
      await(&memory.sent[at.stage], at.phase ^ 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &memory.fetched[at.stage], floats * 4);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory.tile[at.stage], source + size_t(tile) * floats, floats * 4,
                         &memory.fetched[at.stage]);
    }
  } else if (threadIdx.x == workers + 32) {
    int before = -1;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, at.next()) {
      await(&memory.scaled[at.stage], at.phase);
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, target + size_t(tile) * floats, memory.tile[at.stage], floats * 4);
      ptx::cp_async_bulk_commit_group();
      if (before >= 0) {
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
        ptx::mbarrier_arrive(&memory.sent[before]);
      }
      before = at.stage;
    }
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
