/* The full/empty ring of benchmarks/scale.py as a protocol model (`full` and `empty` are words of Promela): mbarriers
 * with pending count, transaction count and phase, asynchronous copies that complete in any order, consumers that check
 * what they read.
 *
 *   spin -a -DK=8 -DS=4 -DW=4 ring.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * K rounds, S stages, W consumers per CTA, C CTAs whose producers multicast their share of a slot to all. A consumer is
 * a warp: its lanes are folded into one process that arrives once, the way a reader of SPIN would have it; W = 32 times
 * the warps unfolds them. It asks for less than mcheck does: memory is sequentially consistent, and there are no
 * proxies, so no missing fence can show.
 *
 * MERGED makes a wait and all that follows it up to the next wait one step, the releases of all CTAs included. That is
 * the smallest state space for this ring, and a model in which no order inside a step can be wrong. CYCLIC drops the
 * bound on the rounds: counters modulo 2S, so that the states no longer grow with K, an abstraction that somebody has to
 * find and to argue.
 */
#ifndef K
#define K 8
#endif
#ifndef S
#define S 4
#endif
#ifndef W
#define W 4
#endif
#ifndef C
#define C 1
#endif

#ifdef CYCLIC
#define ROUNDS (2 * S)
#define NEXT(k) k = (k + 1) % ROUNDS
#define MORE(k) true
#else
#define ROUNDS K
#define NEXT(k) k++
#define MORE(k) (k < K)
#endif

#define SLOT(k) ((k) % S)
#define PARITY(k) (((k) / S) % 2)
#define NOTHING (ROUNDS + 1)

typedef mbarrier {
  bit phase;
  short pending; /* arrivals that the phase still expects */
  short tx       /* shares of a slot that are still to land; negative where one landed before it was announced */
};

mbarrier filled[C * S], freed[C * S];
short buf[C * S * C] = NOTHING; /* which round's data each share of each slot holds */
short carried[C * S];           /* the round that a producer's copy into a slot carries ... */
byte landing[C * S];            /* ... and the CTAs where it has still to land, a bit each */

inline settle(b, count) {
  if
  :: b.pending == 0 && b.tx == 0 -> b.phase = 1 - b.phase; b.pending = count
  :: else
  fi
}

/* mbarrier.try_wait.parity: true if the current phase is not of that parity. */
#define PASSED(b, parity) (b.phase != (parity))

#define FULL filled[c * S + SLOT(k)]
#define EMPTY freed[c * S + SLOT(k)]

inline announce() { FULL.tx = FULL.tx + C; FULL.pending--; settle(FULL, 1) }

inline issue() {
  assert(landing[c * S + SLOT(k)] == 0);
  carried[c * S + SLOT(k)] = k;
  landing[c * S + SLOT(k)] = (1 << C) - 1
}

inline check() {
  d = 0;
  do
  :: d < C -> assert(buf[(c * S + SLOT(k)) * C + d] == k); d++
  :: else -> break
  od;
  d = 0
}

inline release() {
  freed[d * S + SLOT(k)].pending--;
  settle(freed[d * S + SLOT(k)], C * W)
}

proctype producer(byte c) {
  short k;
  do
#ifdef MERGED
  :: d_step { MORE(k) && PASSED(EMPTY, 1 - PARITY(k)) -> announce(); issue(); NEXT(k) }
#else
  :: MORE(k) && PASSED(EMPTY, 1 - PARITY(k)) -> d_step { announce() }; d_step { issue(); NEXT(k) }
#endif
#ifndef CYCLIC
  :: k == K -> break
#endif
  od
}

proctype consumer(byte c) {
  short k;
  byte d;
  do
#ifdef MERGED
  :: d_step {
       MORE(k) && PASSED(FULL, PARITY(k)) -> check();
       do
       :: d < C -> release(); d++
       :: else -> break
       od;
       d = 0; NEXT(k)
     }
#else
  :: MORE(k) && PASSED(FULL, PARITY(k)) -> d_step { check() }
#if C > 1
     ; do
     :: d_step { d < C - 1 -> release(); d++ }
     :: d_step { d == C - 1 -> release(); d = 0; NEXT(k) }; break
     od
#else
     ; d_step { release(); NEXT(k) }
#endif
#endif
#ifndef CYCLIC
  :: k == K -> break
#endif
  od
}

/* The bytes land and are counted at once: a reader that does not wait for the count sees the old ones before, and one
 * that is still reading the slot sees the new ones after. */
#define LAND(d) \
  :: d_step { landing[c * S + s] & (1 << d) -> \
       landing[c * S + s] = landing[c * S + s] & ~(1 << d); \
       buf[((d) * S + s) * C + c] = carried[c * S + s]; \
       filled[(d) * S + s].tx--; \
       settle(filled[(d) * S + s], 1) }

proctype copy(byte c; byte s) {
end:
  do
  LAND(0)
#if C > 1
  LAND(1)
#endif
#if C > 2
  LAND(2)
  LAND(3)
#endif
#if C > 4
  LAND(4)
  LAND(5)
  LAND(6)
  LAND(7)
#endif
  od
}

/* One atomic step initialises the barriers and starts everybody, as the barrier after the init does. */
init {
  byte c, n;
  atomic {
    for (n : 0 .. C * S - 1) { filled[n].pending = 1; freed[n].pending = C * W }
    for (c : 0 .. C - 1) {
      run producer(c);
      for (n : 1 .. W) { run consumer(c) }
      for (n : 0 .. S - 1) { run copy(c, n) }
    }
    c = 0; n = 0
  }
}
