// Each thread draws items of its own.
extern "C" __global__ void __launch_bounds__(64) thread_items(const int* in, int* out, int* next, int items) {
  for (;;) {
#if TWIN == 2
    const int item = atomicAdd_block(next, 1);
#else
    const int item = atomicAdd(next, 1);
#endif
    if (item >= items) break;
#if TWIN == 1
    out[item / 2] = in[item] + 1;
#else
    out[item] = in[item] + 1;
#endif
  }
}
