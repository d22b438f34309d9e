"""Delayed waits: tests of an mbarrier that may observe effects of their thread's later operations.

A test takes effect late, and what does not depend on its result need not come after it (open questions, Q29): it may
observe the completion of a copy that its thread issues next, or the signal or arrival of another thread that has
observed what this one did next; after a ``try_wait`` the thread's own operations on the same mbarrier, too. No
interleaving shows that. It is impossible where the thread first waits for the result, or an acquire fence follows the
test, or the next operations depend on the result.

That a test orders nothing that does not wait for its result is for the model to say: the window has what is
``regardless`` of which test (``Machine.polls``).
"""

from __future__ import annotations

from mcheck.engines.protocol.analysis.non_interleaving import unroll_loops_twice
from mcheck.engines.protocol.analysis.polling import is_redundant_poll, is_spin_loop
from mcheck.engines.protocol.analysis.shared_words import may_contain, signalled_word, word_of
from mcheck.ir import ops
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread

REASON = "a wait may observe effects of its thread's later operations"

_DEPENDS = ops.Branch | ops.Await | ops.ScalarAccess
"""What depends on a result by one of these is ordered after the test, and so is everything later."""


def explain_delayed_waits(program: Program, needed: list[frozenset[str]]) -> str | None:
    """Return why interleavings do not cover all executions, if a test whose result matters may be delayed.

    So may one of an object that ends: by then the object may be gone (9.7.13.15.3).
    """
    done = map(ops.performed_operation, program.operations)
    ended = {word_of(op.address) for op in done if isinstance(op, ops.MbarrierInval)}
    for index, pc in find_delayed_waits(program, needed):
        wait = program.threads[index].code[pc]
        assert isinstance(wait, ops.MbarrierWait)
        if _result_is_needed(wait, needed[index]) or may_contain(word_of(wait.address), ended):
            return REASON
    return None


def find_delayed_waits(program: Program, needed: list[frozenset[str]]) -> frozenset[tuple[int, int]]:
    """Return the tests that may be delayed, each as (thread, place in its code)."""
    if not any(isinstance(op, ops.MbarrierWait) for op in program.operations):
        return frozenset()
    codes: dict[tuple[frozenset[str], tuple[int, ...]], list[Thread]] = {}
    for thread in program.threads:
        codes.setdefault((needed[thread.index], tuple(map(id, thread.code))), []).append(thread)
    relayed = any(_may_relay(threads[0]) for threads in codes.values())
    signalled = {threads[0].index: _signalled_mbarriers(threads[0], relayed=relayed) for threads in codes.values()}
    found: set[tuple[int, int]] = set()
    for threads in codes.values():
        thread = threads[0]
        others = {w for k, words in signalled.items() if k != thread.index or len(threads) > 1 for w in words}
        for pc, op in enumerate(thread.code):
            if isinstance(op, ops.MbarrierWait) and _may_continue(thread, pc) and _may_overtake(thread, pc, others):
                found.update((t.index, pc) for t in threads)
    return frozenset(found)


def _signals(op: Op) -> int | None:
    """Return the word of the mbarrier that the completion of an asynchronous operation signals."""
    op = ops.performed_operation(op)
    return signalled_word(op) if op.facets.asynchronous else None


def _meets_others(op: Op) -> bool:
    return op.facets.synchronises or op.facets.converges


def _publishes(op: Op) -> bool:
    """Return whether other threads may observe by an operation how far its thread has come."""
    signals = op.facets.signals and not op.facets.asynchronous
    return signals or isinstance(op, ops.ScalarWrite) or _meets_others(op)


def _may_relay(thread: Thread) -> bool:
    """Return whether the thread may observe something before its first barrier."""
    code = [ops.performed_operation(thread.code[pc]) for pc in unroll_loops_twice(thread)]
    first = next((k for k, op in enumerate(code) if op.facets.observes), len(code))
    return any(map(_meets_others, code[first:]))


def _signalled_mbarriers(thread: Thread, *, relayed: bool) -> set[int]:
    """Return the mbarriers that the thread signals, or arrives at when it may have observed a later operation of
    another.

    It may have after the first barrier, or anywhere if the observation may be ``relayed``.
    """
    found = {word for word in map(_signals, thread.code) if word is not None}
    learnt = met = False
    for pc in unroll_loops_twice(thread):
        op = ops.performed_operation(thread.code[pc])
        word = signalled_word(op) if learnt else None
        if word is not None:
            found.add(word)
        learnt = learnt or op.facets.observes or (_meets_others(op) and (met or relayed))
        met = met or _meets_others(op)
    return found


def _words_of_phases(op: Op) -> set[int]:
    """Return the word of the mbarrier whose phase an operation counts in or asks for; empty if there is none."""
    where = ops.mbarrier_of(op) if op.facets.signals or op.facets.observes else None
    return set() if where is None else {word_of(where)}


def _result_is_needed(wait: ops.MbarrierWait, needed: frozenset[str]) -> bool:
    return wait.dst is not None and wait.dst.name in needed


def _may_continue(thread: Thread, pc: int) -> bool:
    """Return whether the thread may continue after the test without having waited for the phase."""
    return not is_spin_loop(thread, pc) and not is_redundant_poll(thread.code, thread.labels, pc)


def _may_overtake(thread: Thread, wait: int, others: set[int]) -> bool:
    """Return whether a copy that signals the mbarrier, or an observer of it, may come before the test's result."""
    op = thread.code[wait]
    assert isinstance(op, ops.MbarrierWait)
    word, tainted = word_of(op.address), defined_and_used(op)[0]
    suspends = op.blocking and op.parity is not None
    seen = False
    for pc in unroll_loops_twice(thread):
        behind = thread.code[pc]
        if pc == wait:
            seen = True
            continue
        if not seen:
            continue
        defined, used = defined_and_used(behind)
        if isinstance(behind, ops.Fence) and behind.restrict is None and behind.guard is None:
            if behind.sem in ("acquire", "acq_rel") or (
                behind.sem == "sc" and not (op.blocking and behind.scope == "cta")
            ):
                return False
        elif tainted & used:
            if isinstance(behind, _DEPENDS) or behind.guard is not None:
                return False
            tainted |= defined
        else:
            signal = _signals(behind)
            if signal is not None and may_contain(signal, {word}):
                return True
            done = ops.performed_operation(behind)
            if _publishes(done) and may_contain(word, others):
                return True
            if suspends and may_contain(word, _words_of_phases(done)):
                return True
    return False
