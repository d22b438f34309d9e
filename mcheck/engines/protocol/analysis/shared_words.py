"""Shared words: those that strong accesses read and write, and the mbarriers that operations signal.

Reductions by bulk copies are left out: a strong access of another thread to what they write is a race in interleavings,
too, unless something else orders the two.
"""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size

ANY_WORD = -1
"""The word at an address that is not constant."""


def word_of(address: Expr) -> int:
    """Return the word at an address."""
    return address.value if isinstance(address, Const) else ANY_WORD


def may_contain(word: int, words: set[int]) -> bool:
    """Return whether a word may be one of ``words``."""
    return word in words or ANY_WORD in words or (word == ANY_WORD and bool(words))


def accessed_words(op: Op) -> tuple[int, ...]:
    """Return the words of an access of a thread, one for each scalar of a vector."""
    match op:
        case ops.Load():
            count = len(op.dsts)
        case ops.Store() | ops.AsyncStore():
            count = len(op.srcs)
        case ops.ScalarAccess():
            count = 1
        case _:
            return ()
    first = word_of(op.address)
    return (first,) if first == ANY_WORD else tuple(first + k * type_size(op.type) for k in range(count))


def signalled_word(op: Op) -> int | None:
    """Return the word of the mbarrier that an operation signals; a multicast one signals those of several CTAs."""
    where = ops.mbarrier_of(op) if op.facets.signals else None
    if where is None:
        return None
    return ANY_WORD if getattr(op, "cta_mask", None) is not None else word_of(where)


def is_strong_write(op: Op) -> bool:
    """Return whether an operation is a strong store or an atomic, synchronous or not."""
    if isinstance(op, ops.AsyncStore):
        return op.sem != "weak" or op.reduce is not None  # st.async.release and red.async
    return isinstance(op, ops.ScalarWrite) and op.sem != "weak"


def find_released_words(program: Program) -> frozenset[int] | None:
    """Return the words that some write may hand over: a release, or a write behind a fence (8.8). ``None`` if the
    program has asynchronous operations, which may.
    """
    found: set[int] = set()
    seen: set[tuple[int, ...]] = set()
    for thread in program.threads:
        key = tuple(map(id, thread.code))
        if key in seen:
            continue
        seen.add(key)
        fenced = False
        for pc in range(len(thread.code)) if not _has_loops(thread) else [*range(len(thread.code))] * 2:
            op = ops.performed_operation(thread.code[pc])
            fenced = fenced or isinstance(op, ops.Fence | ops.ProxyFence)
            if isinstance(op, ops.ScalarWrite):
                if fenced or op.sem in ("release", "acq_rel"):
                    found.update(accessed_words(op))
            elif op.facets.asynchronous or op.facets.signals:
                return None
    return frozenset(found)


def _has_loops(thread: Thread) -> bool:
    return any(isinstance(op, ops.Branch) and thread.labels[op.target] <= pc for pc, op in enumerate(thread.code))


def written_words(op: Op) -> tuple[int, ...]:
    """Return the words that an operation writes: those of a strong write, and the mbarrier that it signals."""
    op = ops.performed_operation(op)
    words = accessed_words(op) if is_strong_write(op) else ()
    signal = signalled_word(op)
    return words if signal is None else (*words, signal)
