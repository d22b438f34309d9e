// Strong accesses to a word, with the order and the scope that PTX names.
#pragma once

#define LOAD(name, instruction)                                                              \
  __device__ __forceinline__ int name(const int* word) {                                     \
    int value;                                                                               \
    asm volatile(instruction ".global.s32 %0, [%1];" : "=r"(value) : "l"(word) : "memory"); \
    return value;                                                                            \
  }

#define STORE(name, instruction)                                                             \
  __device__ __forceinline__ void name(int* word, int value) {                               \
    asm volatile(instruction ".global.s32 [%0], %1;" ::"l"(word), "r"(value) : "memory");   \
  }

#define UPDATE(name, instruction, type)                                                      \
  __device__ __forceinline__ int name(int* word, int operand) {                              \
    int old;                                                                                 \
    asm volatile(instruction "." type " %0, [%1], %2;" : "=r"(old) : "l"(word), "r"(operand) : "memory"); \
    return old;                                                                              \
  }

LOAD(load_weak, "ld.weak")
LOAD(load_relaxed, "ld.relaxed.gpu")
LOAD(load_acquire, "ld.acquire.gpu")
LOAD(load_acquire_cta, "ld.acquire.cta")
LOAD(load_acquire_cluster, "ld.acquire.cluster")
LOAD(load_acquire_sys, "ld.acquire.sys")

STORE(store_relaxed, "st.relaxed.gpu")
STORE(store_release, "st.release.gpu")
STORE(store_release_cta, "st.release.cta")
STORE(store_release_cluster, "st.release.cluster")
STORE(store_release_sys, "st.release.sys")

UPDATE(add_relaxed, "atom.relaxed.gpu.global.add", "s32")
UPDATE(add_release, "atom.release.gpu.global.add", "s32")
UPDATE(add_release_cta, "atom.release.cta.global.add", "s32")
UPDATE(add_acq_rel, "atom.acq_rel.gpu.global.add", "s32")
UPDATE(exchange_relaxed, "atom.relaxed.gpu.global.exch", "b32")
UPDATE(exchange_acq_rel, "atom.acq_rel.gpu.global.exch", "b32")

LOAD(load_relaxed_sys, "ld.relaxed.sys")
STORE(store_relaxed_sys, "st.relaxed.sys")
UPDATE(add_relaxed_sys, "atom.relaxed.sys.global.add", "s32")
UPDATE(add_release_sys, "atom.release.sys.global.add", "s32")
UPDATE(add_acq_rel_sys, "atom.acq_rel.sys.global.add", "s32")

#undef LOAD
#undef STORE
#undef UPDATE
