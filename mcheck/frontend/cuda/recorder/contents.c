/* What is known of the contents of memory. Kernels do not run, so that the bytes here are not those of a GPU once a launch may
   have written them: they are unknown from then on, until the program writes them again, and so is every copy of them,
   in memory of the program too. What the program computes from such a copy is not followed. */
#include "recorder.h"
#include <stdlib.h>
#include <string.h>

enum { TABLE = 1 << 20 };
enum { UNTOLD, KNOWN, UNKNOWN }; /* of a byte: no call has written it; a call has, with contents that are known, or not */

/* --- memory of the program that holds unknown contents --------------------------------------------------------------- */

static struct { char *start; size_t size; } stale[1 << 12];
static unsigned stales;
static int all_stale;

/* After copies that are not carried out: any memory of the program may be their target. */
void distrust_program(void) { all_stale = 1; }

static void add_stale(char *start, size_t size) {
  for (unsigned i = 0; i < stales; ++i)
    if (stale[i].start <= start && start + size <= stale[i].start + stale[i].size) return;
  if (stales == sizeof stale / sizeof *stale) all_stale = 1;
  else stale[stales].start = start, stale[stales++].size = size;
}

static void remove_stale(const char *start, size_t size) {
  for (unsigned i = 0; i < stales;)
    if (start <= stale[i].start && stale[i].start + stale[i].size <= start + size) stale[i] = stale[--stales];
    else ++i;
}

/* Set `of[i]` to `value` for each of `size` bytes of the program at `start` that is unknown; whether there is one among `all`. */
static int mark_stale(unsigned char *of, size_t size, int value, const char *start, size_t all) {
  int found = all_stale;
  if (all_stale) memset(of, value, size);
  for (unsigned i = 0; i < stales; ++i) {
    const char *from = stale[i].start < start ? start : stale[i].start, *end = stale[i].start + stale[i].size;
    if (end > start + all) end = start + all;
    if (from < end) found = 1;
    if (end > start + size) end = start + size;
    if (from < end) memset(of + (from - start), value, end - from);
  }
  return found;
}

/* Memory of the program that becomes memory of kernels, and is its own again. */
void begin_foreign(allocation_t *at) { mark_stale(at->state, front(at), UNKNOWN, at->start, front(at)); }
void end_foreign(const allocation_t *at) {
  if (at->used || memchr(at->state, UNKNOWN, front(at))) add_stale(at->start, at->size);
}

/* --- bytes ----------------------------------------------------------------------------------------------------------- */

/* Whether byte `i` is unknown. No more than the front is followed, but in memory of the program itself. */
static int unknown(const allocation_t *at, size_t i) {
  if (i >= front(at)) return !at->foreign || at->used || memchr(at->state, UNKNOWN, front(at)) != NULL;
  if (at->state[i] != UNTOLD) return at->state[i] == UNKNOWN;
  return at->kind == DEVICE || (!at->foreign && patterned(at, i));
}

static int zeros(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i]) return 0;
  return 1;
}

/* How many first bytes of an allocation are known. In a large one this is for flags and counters: what it has at its front
   before the rest, or zeros. Data that go on behind the front are not given. */
size_t filled(const allocation_t *at) {
  size_t end = 0;
  if (at->foreign) return 0;
  while (end < front(at) && !unknown(at, end)) ++end;
  if (at->size <= MARKED || end < MARKED) return end;
  return zeros(at->start, MARKED) ? MARKED : 0;
}

/* How many of `size` bytes from `memory` on are in the front of the allocation. */
static size_t in_front(const allocation_t *at, const char *memory, size_t size) {
  size_t offset = memory - at->start;
  return offset >= front(at) ? 0 : size < front(at) - offset ? size : front(at) - offset;
}

/* `size` bytes of memory are about to be written with contents that the program gives. */
void *touch(void *memory, size_t size) {
  allocation_t *at = allocation_at((uintptr_t)memory);
  if (!at) remove_stale(memory, size);
  else ++at->version, at->changed = 1, memset(at->state + ((char *)memory - at->start), KNOWN, in_front(at, memory, size));
  return memory;
}

/* A copy: where it ends, as much is known as where it is from. */
void *copy(void *to, const void *from, size_t size) {
  allocation_t *target = allocation_at((uintptr_t)to);
  const allocation_t *source = allocation_at((uintptr_t)from);
  size_t told = target ? in_front(target, to, size) : 0, offset = source ? (const char *)from - source->start : 0;
  unsigned char state[MARKED];
  int any = 0;
  memset(state, KNOWN, told);
  if (source) {
    for (size_t i = 0; i < (target ? told : size) && (target || !any); ++i)
      if (unknown(source, offset + i)) {
        any = 1;
        if (target) state[i] = UNKNOWN;
      }
  } else any = mark_stale(state, told, UNKNOWN, from, size);
  memmove(to, from, size);
  if (target) ++target->version, target->changed = 1, memcpy(target->state + ((char *)to - target->start), state, told);
  else if (any) add_stale(to, size);
  else remove_stale(to, size);
  return to;
}

/* --- launches -------------------------------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t digest(const allocation_t *at) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < front(at); ++i) sum = (sum ^ (unsigned char)at->start[i]) * 0x100000001b3;
  return sum;
}

/* Before a launch that names the memory: whether the program has changed it by itself, without a call, as it can managed
   and pinned memory. What exactly is not known. */
void notice(unsigned number) {
  allocation_t *at = allocation_number(number);
  if (at->used && !at->foreign && digest(at) != at->digest && !memchr(at->state, KNOWN, front(at))) ++at->version;
}

static void forget(allocation_t *at) { at->used = 1, memset(at->state, UNKNOWN, front(at)), at->digest = digest(at); }

static void leave_at(allocation_t *at, unsigned launch);

/* What the pointers in memory lead to, in so much of it as tables of pointers have: a kernel follows those too that the
   record does not tell. */
static void leave_targets(const allocation_t *at, unsigned launch) {
  uint64_t low = UINT64_MAX, high = 0, word;
  allocation_t *each;
  for (unsigned i = 0; (each = allocation(i)); ++i) {
    uint64_t start = (uint64_t)(uintptr_t)each->start;
    if (start < low) low = start;
    if (start + each->size > high) high = start + each->size;
  }
  for (size_t i = 0; i + 8 <= at->size && i < TABLE; i += 8) {
    memcpy(&word, at->start + i, 8);
    allocation_t *target = word >= low && word < high ? allocation_at(word) : NULL;
    if (target && target->left != launch) ++target->version, leave_at(target, launch);
  }
}

static void leave_at(allocation_t *at, unsigned launch) {
  at->left = launch, at->changed = 1;
  forget(at);
  leave_targets(at, launch);
}

/* After a launch that names memory, of these numbers: kernels may have written it, the variables of their modules but
   constants, and what pointers in those lead to. Memory that the launch does not name is another one from then on. */
void leave(const unsigned *numbers, unsigned count) {
  static unsigned launch;
  allocation_t *at;
  ++launch;
  for (unsigned i = 0; i < count; ++i) allocation_number(numbers[i])->left = launch;
  for (unsigned i = 0; i < count; ++i) leave_at(allocation_number(numbers[i]), launch);
  for (unsigned i = 0; (at = allocation(i)); ++i)
    if (at->variable == CONSTANT && at->left != launch) leave_targets(at, launch);
    else if (at->variable && at->left != launch) {
      int changed = at->changed;
      ++at->version, leave_at(at, launch);
      at->changed = changed;
    }
}

/* Whether a variable may hold something else than its module says: a call has written it, or the program by itself, as it
   can managed ones, or kernels that were given its address. */
int is_changed(const allocation_t *at) {
  for (size_t i = 0; at->kind == MANAGED && i < front(at) && !at->changed; ++i)
    if (!patterned(at, i)) return 1;
  return at->changed || (at->kind == MANAGED && at->size > MARKED);
}

/* After something that is not recorded: all memory may have been written. */
int forget_contents(void) {
  allocation_t *at;
  for (unsigned i = 0; (at = allocation(i)); ++i) ++at->version, at->changed = 1, forget(at);
  return 0;
}
