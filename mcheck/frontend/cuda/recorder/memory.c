/* Device memory: memory of the host. The first bytes of what the program may write without a call are a pattern there. */
#include "recorder.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HOLE = 4 };
static const unsigned char PATTERN[16] = {0xb5, 0x2c, 0xe1, 0x96, 0x4b, 0xd8, 0x73, 0x0f, 0xa9, 0x5e, 0x17, 0xc4, 0x38, 0x8d, 0xf2, 0x61};
static allocation_t allocations[1 << 16];
static unsigned allocated, numbered;

size_t front(const allocation_t *at) { return at->size < MARKED ? at->size : MARKED; }

int allocate(void **out, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2; /* cudaErrorMemoryAllocation */
  for (size_t i = 0; i < size && i < MARKED; ++i) ((unsigned char *)memory)[i] = PATTERN[i % 16];
  allocation_t made = {.start = memory, .size = size, .kind = kind, .number = numbered++, .gpu = current_device()};
  if (!(made.state = calloc(1, front(&made) + 1))) return 2;
  allocations[allocated++] = made;
  *out = memory;
  return 0;
}

/* Memory of the program itself that kernels may access. */
int adopt(void *memory, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  allocation_t made = {.start = memory, .size = size, .kind = kind, .number = numbered++, .gpu = current_device(), .foreign = 1};
  if (!(made.state = calloc(1, front(&made) + 1))) return 2;
  allocations[allocated++] = made;
  begin_foreign(&allocations[allocated - 1]);
  return 0;
}

int release(void *memory) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].start == memory && memory) {
      if (allocations[i].graph) break;
      if (allocations[i].foreign) end_foreign(&allocations[i]);
      else munmap(memory, allocations[i].size ? allocations[i].size : 1);
      free(allocations[i].state);
      allocations[i] = allocations[--allocated];
      break;
    }
  return 0;
}

/* Memory of a graph stays: the next launch of the graph has it again, at the same address. */
int allocate_for_graph(void **out, size_t size) {
  int refused = allocate(out, size, DEVICE);
  for (unsigned i = 0; i < allocated && !refused; ++i)
    if (allocations[i].start == *out) allocations[i].graph = 1;
  return refused;
}

/* The allocation that a pointer leads into. */
allocation_t *allocation_at(uint64_t pointer) {
  for (unsigned i = 0; i < allocated; ++i) {
    uint64_t start = (uint64_t)(uintptr_t)allocations[i].start;
    if (start <= pointer && pointer < start + allocations[i].size) return &allocations[i];
  }
  return NULL;
}

allocation_t *allocation_number(unsigned number) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].number == number) return &allocations[i];
  return NULL;
}

/* Bytes from `pointer` to the end of its allocation; -1 if it points into none. */
long long rest(uint64_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  return at ? (long long)((uint64_t)(uintptr_t)at->start + at->size - pointer) : -1;
}

/* Every allocation, from `i` = 0 on; NULL behind the last. */
allocation_t *allocation(unsigned i) { return i < allocated ? &allocations[i] : NULL; }

/* Whether the program has not written byte `i` of the front, as far as the pattern tells. */
int patterned(const allocation_t *at, size_t i) {
  size_t first = i, end = i;
  while (end < front(at) && end - i < HOLE && (unsigned char)at->start[end] == PATTERN[end % 16]) ++end;
  if (end == i) return 0;
  while (first && i - first < HOLE && (unsigned char)at->start[first - 1] == PATTERN[(first - 1) % 16]) --first;
  return end - first >= HOLE || end == front(at);
}
