// The last CTA of two GPUs to draw a ticket adds up what all have written; nobody waits.
#include "../ptx.cuh"

extern "C" __global__ void __launch_bounds__(32) last_of_both(int* partial, int* total, int* tickets, int rank) {
  __shared__ int ticket;
  const int part = rank * gridDim.x + blockIdx.x;
  partial[32 * part + threadIdx.x] = part;
  __syncthreads();
  if (threadIdx.x == 0)
#if TWIN == 1
    ticket = add_acq_rel(tickets, 1);
#elif TWIN == 2
    ticket = add_relaxed_sys(tickets, 1);
#else
    ticket = add_acq_rel_sys(tickets, 1);
#endif
  __syncthreads();
  if (ticket == 2 * gridDim.x - 1) {
    int sum = 0;
    for (int k = 0; k < 2 * gridDim.x; ++k) sum += partial[32 * k + threadIdx.x];
    total[threadIdx.x] = sum;
  }
}
