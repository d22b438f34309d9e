"""Whether a look at an mbarrier may see the completion of a copy that is issued behind it.

A completion signal is ordered with the accesses of its own operation only (PTX ISA 9.0 section 8.9.1.1, open questions
Q29), so ``test_wait`` may take effect after what comes behind it: a copy of its thread, or of another one that learns
of what its thread did next. No interleaving shows that. It cannot be where the thread first waits for the answer, or
an acquire fence stands behind the look, or what is issued depends on the answer.
"""

from __future__ import annotations

from mcheck.events.liveness_of_registers import effects
from mcheck.kernel.polling import only_saves_a_wait, spins
from mcheck.kernel.reordering import ANY, in_order, meets, word_of
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.program.program import Program, Thread

REASON = "a look at an mbarrier may see the completion of a copy that is issued behind it"

_TELLS = (
    ops.Store, ops.Atomic, ops.MbarrierArrive, ops.MbarrierTx, ops.Barrier, ops.ClusterBarrier, ops.WarpSync,
    ops.Collective,
)  # fmt: skip
"""By these other threads may learn that the thread has come so far."""


def sees_later_copies(program: Program, needed: list[frozenset[str]]) -> str | None:
    """The reason why interleavings are not all, if some look whose answer decides something may do so."""
    codes: dict[tuple[frozenset[str], tuple[int, ...]], list[Thread]] = {}
    for thread in program.threads:
        codes.setdefault((needed[thread.index], tuple(map(id, thread.code))), []).append(thread)
    if not any(isinstance(op, ops.MbarrierWait) for threads in codes.values() for op in threads[0].code):
        return None
    signalled = {threads[0].index: _signalled(threads[0]) for threads in codes.values()}
    if not any(signalled.values()):
        return None
    for (wanted, _), threads in codes.items():
        thread = threads[0]
        others = {w for k, words in signalled.items() if k != thread.index or len(threads) > 1 for w in words}
        for pc, op in enumerate(thread.code):
            if isinstance(op, ops.MbarrierWait) and _decides(thread, pc, wanted) and _passed(thread, pc, others):
                return REASON
    return None


def _signals(op: Op) -> int | None:
    """The word of the mbarrier that the completion of an asynchronous operation signals."""
    op = ops.performed(op)
    if isinstance(op, ops.CpAsyncArrive | ops.TensorCommit):
        address = op.address
    else:
        found = getattr(op, "mbar", None)
        if found is None:
            return None
        address = found
    return ANY if getattr(op, "cta_mask", None) is not None else word_of(address)


def _signalled(thread: Thread) -> set[int]:
    return {word for word in map(_signals, thread.code) if word is not None}


def _decides(thread: Thread, pc: int, needed: frozenset[str]) -> bool:
    op = thread.code[pc]
    assert isinstance(op, ops.MbarrierWait)
    used = op.dst is not None and op.dst.name in needed
    return used and not spins(thread, pc) and not only_saves_a_wait(thread.code, thread.labels, pc)


def _passed(thread: Thread, look: int, others: set[int]) -> bool:
    """Whether a copy that signals the mbarrier may be issued before the look has its answer."""
    op = thread.code[look]
    assert isinstance(op, ops.MbarrierWait)
    word, tainted = word_of(op.address), effects(op)[0]
    seen = False
    for pc in in_order(thread):
        behind = thread.code[pc]
        if pc == look:
            seen = True
            continue
        if not seen:
            continue
        defined, used = effects(behind)
        if isinstance(behind, ops.Fence) and behind.restrict is None and behind.guard is None:
            if behind.sem in ("acquire", "acq_rel", "sc"):
                return False
        elif tainted & used:
            if isinstance(behind, ops.Branch | ops.Await):
                return False
            tainted |= defined
        else:
            signal = _signals(behind)
            if signal is not None and meets(signal, {word}):
                return True
            if isinstance(ops.performed(behind), _TELLS) and meets(word, others):
                return True
    return False
