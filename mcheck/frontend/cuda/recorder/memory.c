/* Device memory: memory of the host. Small allocations begin with a pattern, by which what the program wrote is known. */
#include "recorder.h"
#include <string.h>
#include <sys/mman.h>

enum { MARKED = 1 << 14, HOLE = 4 };
static const unsigned char PATTERN[16] = {0xb5, 0x2c, 0xe1, 0x96, 0x4b, 0xd8, 0x73, 0x0f, 0xa9, 0x5e, 0x17, 0xc4, 0x38, 0x8d, 0xf2, 0x61};
static allocation_t allocations[1 << 16];
static unsigned allocated, numbered;

int allocate(void **out, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2; /* cudaErrorMemoryAllocation */
  if (size <= MARKED)
    for (size_t i = 0; i < size; ++i) ((unsigned char *)memory)[i] = PATTERN[i % 16];
  allocations[allocated++] = (allocation_t){memory, size, kind, numbered++, 0, 0, current_device()};
  *out = memory;
  return 0;
}

/* Memory of the program itself that kernels may access. */
int adopt(void *memory, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  allocations[allocated++] = (allocation_t){memory, size, kind, numbered++, 1, 0, current_device()};
  return 0;
}

int release(void *memory) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].start == memory && memory) {
      if (!allocations[i].foreign) munmap(memory, allocations[i].size ? allocations[i].size : 1);
      allocations[i] = allocations[--allocated];
      break;
    }
  return 0;
}

/* The allocation that a pointer leads into. */
const allocation_t *allocation_at(uint64_t pointer) {
  for (unsigned i = 0; i < allocated; ++i) {
    uint64_t start = (uint64_t)(uintptr_t)allocations[i].start;
    if (start <= pointer && pointer < start + allocations[i].size) return &allocations[i];
  }
  return NULL;
}

const allocation_t *allocation_number(unsigned number) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].number == number) return &allocations[i];
  return NULL;
}

/* Bytes from `pointer` to the end of its allocation; -1 if it points into none. */
long long rest(uint64_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  return at ? (long long)((uint64_t)(uintptr_t)at->start + at->size - pointer) : -1;
}

/* How many first bytes of a small allocation the program has written; 0 for a large one, whose contents are not looked at. */
size_t filled(const allocation_t *at) {
  if (at->size > MARKED || at->foreign) return 0;
  size_t end = 0, same = 0;
  for (size_t i = 0; i < at->size && same < HOLE; ++i) {
    if ((unsigned char)at->start[i] == PATTERN[i % 16]) ++same;
    else same = 0, end = i + 1;
  }
  return end;
}

/* A copy or a fill has written memory: what kernels left there before counts no more. */
void *touch(void *memory) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].start <= (char *)memory && (char *)memory < allocations[i].start + allocations[i].size) ++allocations[i].version;
  return memory;
}
