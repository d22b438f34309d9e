/* Device memory: memory of the host. Its first bytes are a pattern, by which what the program wrote there is known. */
#include "recorder.h"
#include <string.h>
#include <sys/mman.h>

enum { MARKED = 1 << 14, HOLE = 4, TABLE = 1 << 20 };
static const unsigned char PATTERN[16] = {0xb5, 0x2c, 0xe1, 0x96, 0x4b, 0xd8, 0x73, 0x0f, 0xa9, 0x5e, 0x17, 0xc4, 0x38, 0x8d, 0xf2, 0x61};
static allocation_t allocations[1 << 16];
static unsigned allocated, numbered;

int allocate(void **out, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2; /* cudaErrorMemoryAllocation */
  for (size_t i = 0; i < size && i < MARKED; ++i) ((unsigned char *)memory)[i] = PATTERN[i % 16];
  allocations[allocated++] = (allocation_t){.start = memory, .size = size, .kind = kind, .number = numbered++, .gpu = current_device()};
  *out = memory;
  return 0;
}

/* Memory of the program itself that kernels may access. */
int adopt(void *memory, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  allocations[allocated++] = (allocation_t){.start = memory, .size = size, .kind = kind, .number = numbered++, .gpu = current_device(), .foreign = 1};
  return 0;
}

int release(void *memory) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].start == memory && memory) {
      if (allocations[i].graph) break;
      if (!allocations[i].foreign) munmap(memory, allocations[i].size ? allocations[i].size : 1);
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

static size_t front(const allocation_t *at) { return at->size < MARKED ? at->size : MARKED; }

static int zeros(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i]) return 0;
  return 1;
}

/* How many first bytes of an allocation are known, since the program has written them. In a large one this is for flags and
   counters: what it has at its front before the rest, or zeros. Data that go on behind the front are not given. */
size_t filled(const allocation_t *at) {
  if (at->foreign) return 0;
  size_t end = at->used ? at->known : 0, same = 0;
  for (size_t i = 0; !at->used && i < front(at) && same < HOLE; ++i) {
    if ((unsigned char)at->start[i] == PATTERN[i % 16]) ++same;
    else same = 0, end = i + 1;
  }
  if (at->size <= MARKED || end < MARKED) return end;
  return zeros(at->start, MARKED) ? MARKED : 0;
}

/* A copy or a fill writes `size` bytes of memory: what kernels left there before counts no more. */
void *touch(void *memory, size_t size) {
  for (unsigned i = 0; i < allocated; ++i) {
    allocation_t *at = &allocations[i];
    if ((char *)memory < at->start || (char *)memory >= at->start + at->size) continue;
    size_t offset = (size_t)((char *)memory - at->start);
    ++at->version;
    if (offset <= at->known && offset + size > at->known) at->known = offset + size;
  }
  return memory;
}

static allocation_t *numbered_as(unsigned number) { return (allocation_t *)allocation_number(number); }

/* FNV-1a. */
static uint64_t digest(const allocation_t *at) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < front(at); ++i) sum = (sum ^ (unsigned char)at->start[i]) * 0x100000001b3;
  return sum;
}

/* Before a launch that names the memory: whether the program has changed it by itself, without a call, as it can managed
   and pinned memory. What exactly is not known. */
void notice(unsigned number) {
  allocation_t *at = numbered_as(number);
  if (at->used && !at->foreign && digest(at) != at->digest && !at->known) ++at->version;
}

static void forget(allocation_t *at) { at->used = 1, at->known = 0, at->digest = digest(at); }

/* The pointers in large memory, of which little is written: in so much of it as tables of pointers have. */
static void forget_targets(const allocation_t *at) {
  uint64_t low = UINT64_MAX, high = 0, word;
  for (unsigned i = 0; i < allocated; ++i) {
    uint64_t start = (uint64_t)(uintptr_t)allocations[i].start;
    if (start < low) low = start;
    if (start + allocations[i].size > high) high = start + allocations[i].size;
  }
  for (size_t i = 0; i + 8 <= at->size && i < TABLE; i += 8) {
    memcpy(&word, at->start + i, 8);
    allocation_t *target = word >= low && word < high ? (allocation_t *)allocation_at(word) : NULL;
    if (target && (target->known || !target->used)) ++target->version, forget(target);
  }
}

/* After a launch that names the memory: kernels may have written it, and what pointers in it lead to. */
void leave(unsigned number) {
  allocation_t *at = numbered_as(number);
  forget(at);
  if (at->size > MARKED) forget_targets(at);
}

/* After something that is not recorded: all memory may have been written. */
int forget_contents(void) {
  for (unsigned i = 0; i < allocated; ++i) ++allocations[i].version, forget(&allocations[i]);
  return 0;
}
