// Work drawn from a queue: one atomic per warp for all its lanes that have something (ballot, popc).
extern "C" __global__ void __launch_bounds__(128) queue(const int* source, int* kept, unsigned* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? source[i] : 0;
  unsigned want = __ballot_sync(~0u, value > 0), lane = threadIdx.x % 32;
  unsigned base = 0;
  if (lane == 0 && want) base = atomicAdd(count, __popc(want));
  base = __shfl_sync(~0u, base, 0);
  if (value > 0) kept[base + __popc(want & ((1u << lane) - 1))] = value;
}
