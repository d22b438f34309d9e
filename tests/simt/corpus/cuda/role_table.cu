// Two pairs of senders and takers, each role a function that a table in constant memory names; the numbers of the named barriers are computed.
struct Boxes {
  int value[4][64];
};
using Role = void (*)(Boxes*, int*, int, int);

__device__ void meet(int number) { asm volatile("bar.sync %0, 128;" ::"r"(number) : "memory"); }
__device__ void tell(int number) { asm volatile("bar.arrive %0, 128;" ::"r"(number) : "memory"); }

__device__ __noinline__ void send(Boxes* boxes, int*, int rounds, int pair) {
  for (int k = 0; k < rounds; ++k) {
    const int slot = pair * 2 + k % 2;
    if (k >= 2) meet(9 + slot);
    boxes->value[slot][threadIdx.x % 64] = k * 3 + threadIdx.x;
    tell(1 + slot);
  }
}

__device__ __noinline__ void take(Boxes* boxes, int* sums, int rounds, int pair) {
  int sum = 0;
  for (int k = 0; k < rounds; ++k) {
    const int slot = pair * 2 + k % 2;
    meet(1 + slot);
    sum += boxes->value[slot][threadIdx.x % 64 ^ 5];
    if (k + 2 < rounds) tell(9 + slot);
  }
  sums[blockIdx.x * 128 + pair * 64 + threadIdx.x % 64] = sum;
}

__constant__ Role roles[2] = {send, take};

extern "C" __global__ void __launch_bounds__(256) role_table(int* sums, int rounds) {
  __shared__ Boxes boxes;
  const int group = threadIdx.x / 64;
  roles[group % 2](&boxes, sums, rounds, group / 2);
}
