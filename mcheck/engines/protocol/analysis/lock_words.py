"""Lock words: words whose coherence order is causality, too.

A word is a lock if each write to it is a *take* or a *return*, all morally strong with each other:

* a take is a swap that is repeated until it reads the known value ``free``; it acquires, and leaves other known
  values;
* a return stores or exchanges ``free``, and releases; on every way to it, the last write of its thread to the word is
  a take.

In every consistent execution, the write right behind a take in coherence order, if there is one, is the return that
follows in its thread. Let L be the first take in coherence order for which that is wrong, and w the write behind it.

* If w is a take, it has read what L has left (PTX ISA 9.0 section 8.10.3), which is not ``free``, and has not ended.
* If w is the return of a take L', then L' is in front of w, as in program order (8.10.5). It is not L, so it is in
  front of L, and by the choice of L the write right behind it is its return w. But w is right behind L.

The first write of all is no return, and none is right behind another one, since the take of its thread is in front of
it. So the order is L1, U1, L2, U2 and so on, where each U is the return of the L in front of it. Each take but the
first reads from the return in front of it, and these two synchronise (8.9.4). Only the last take may have no return.
The order is only shorter if the word is not ``free`` at first, if a take never succeeds, or if a lock is never
returned.

Hence, where coherence leads from a write w of one thread to a write w' of another one, all that is in front of w in
its thread comes before all that is behind w' in the other thread, in base causality (8.9.5). Let w be in the section
k of the order (Lk, Uk), and w' in the section m: k is less than m, so Uk has been executed, at w or behind it. It
comes before Lm, which is at w' or in front of it. A passage of a cycle that leaves at w and one that enters at w' are
ordered as if w released and w' acquired. Such edges compose with each other and with those that synchronise: the
order of the one ends in a thread where that of the next one begins, or in front of it.

What a take does before it succeeds is left out. A compare-and-swap that fails changes nothing. An exchange that fails
leaves what it has found if the word only ever holds ``free`` and one other value, which is asked of it here: the same
execution without these exchanges is consistent, too, and no more ordered.

A take that does not acquire itself may be followed by a fence, and a return that does not release follow one (8.8),
with nothing but computations in between, so that no passage begins or ends there.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.engines.protocol.analysis.atomic_words import AtomicWords, WordWrite, are_scopes_mutual
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread


def find_lock_words(words: AtomicWords) -> frozenset[int]:
    """Return those of the atomic words that are locks."""
    return frozenset(word for word, (first, writes) in words.items() if _is_lock(first, writes))


def _is_lock(first: int | None, writes: tuple[WordWrite, ...]) -> bool:
    free = next((w.awaited for w in writes if w.awaited is not None), None)
    held = {first, *(w.value for w in writes)}  # None is any value
    if (len(held) > 2 or None in held) and any(w.awaited is not None and w.expected is None for w in writes):
        return False
    if not all(_is_take(w, free) or (w.awaited is None and w.value == free) for w in writes):
        return False
    scopes = [(w.op.scope, w.place) for w in writes]
    for write in writes:
        if not _synchronises(write):
            fence = _find_fence(write)
            if fence is None:
                return False
            scopes.append((fence.scope, write.place))
    return are_scopes_mutual(scopes) and _follow_takes(writes)


def _is_take(write: WordWrite, free: int | None) -> bool:
    """Return whether a write is that of a swap that has read ``free``, and leaves something else."""
    if not isinstance(write.op, ops.Atomic) or write.awaited is None or write.awaited != free:
        return False
    writes = write.op.op == "exch" or (write.op.op == "cas" and write.expected == free)
    return writes and write.value not in (None, free)


def _synchronises(write: WordWrite) -> bool:
    """Return whether a take acquires, or a return releases, by itself."""
    return write.op.sem in (("release" if write.awaited is None else "acquire"), "acq_rel")


def _find_fence(write: WordWrite) -> ops.Fence | None:
    """Return the fence right behind a take, or right in front of a return, by which it synchronises (8.8)."""
    code, step = write.thread.code, 1 if write.awaited is not None else -1
    at = write.pc + step
    while 0 <= at < len(code) and isinstance(code[at], ops.Alu):
        at += step
    fence = code[at] if 0 <= at < len(code) else None
    if not isinstance(fence, ops.Fence) or fence.restrict is not None or fence.guard is not None:
        return None
    return fence if fence.sem in ("acquire" if step > 0 else "release", "acq_rel", "sc") else None


def _follow_takes(writes: tuple[WordWrite, ...]) -> bool:
    """Return whether on every way through the code of a thread its last write in front of a return is a take."""
    takes: dict[int, dict[int, bool]] = {}
    codes: dict[int, Thread] = {}
    for w in writes:
        codes[id(w.thread.code)] = w.thread
        takes.setdefault(id(w.thread.code), {})[w.pc] = w.awaited is not None
    return all(_follow_takes_in(codes[code], places) for code, places in takes.items())


def _follow_takes_in(thread: Thread, takes: Mapping[int, bool]) -> bool:
    seen: set[tuple[int, bool]] = set()
    left = [(0, False)]
    while left:
        pc, taken = left.pop()
        if pc >= len(thread.code) or (pc, taken) in seen:
            continue
        seen.add((pc, taken))
        if pc in takes:
            if not takes[pc] and not taken:
                return False
            taken = takes[pc]
        left += [(to, taken) for to in _following(thread, pc)]
    return True


def _following(thread: Thread, pc: int) -> tuple[int, ...]:
    """Return where a thread may continue."""
    op: Op = thread.code[pc]
    if isinstance(op, ops.Branch):
        target = thread.labels[op.target]
        return (target,) if op.condition is None and op.guard is None else (target, pc + 1)
    return () if isinstance(op, ops.Exit | ops.Trap) and op.guard is None else (pc + 1,)
