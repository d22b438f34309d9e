"""Check whether a program has executions that are no interleaving of its steps, and that matter.

A strong read returns what has been written before it in the order of the steps, and the writes to a word are in that
order too. An execution of the model that is none of these has a cycle of program order, reads-from and coherence
between strong accesses: load buffering, 2+2W, S and similar tests. Such a cycle goes through at least two threads, each
of which it enters at one access and leaves at a later one, a *passage* here. The model forbids it (PTX ISA 9.0 sections
8.10.1, 8.10.2, 8.10.4)

* if it is made of reads-from alone, and each passage is a dependency or each of these synchronises;
* if it has one coherence edge, and each reads-from synchronises;
* if each passage has a fence.sc of a sufficient scope;
* if an edge leads back across a barrier that all threads of the CTA execute (``joint_barriers``);
* if an edge leads from a swap that waits for a value to the only write that leaves it (``sole_writes``).

Coherence between writes of a lock synchronises (``lock_words``).

Any other cycle is assumed to be possible. Only cycles whose reads decide something count, and coherence counts on words
that such a read observes. What blocks (an awaited value, a wait for a phase) is a dependency for everything that
follows. A relaxed barrier of a cluster, an instruction for the lanes of a mask, and a group that a warpgroup commits
order no memory: a cycle passes through them as through an awaited word that nothing releases.

Of a model that is not shipped only those axioms are used that it has in common with a shipped one: if those about
orders differ, no cycle is forbidden except those of dependencies (``mcheck.engines.protocol.analysis.axioms`` requires
their axiom) and, by an axiom that is the same, those of one word and those from a swap to what it has waited for.
Locks also need the axiom of atomicity.

``mcheck.engines.protocol.analysis.interleaving`` is the same check for final states, for which every value counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.base.records import dataclass, replace
from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.analysis.atomic_words import find_atomic_words
from mcheck.engines.protocol.analysis.joint_barriers import find_joint_barriers
from mcheck.engines.protocol.analysis.lane_groups import Partition
from mcheck.engines.protocol.analysis.lock_words import find_lock_words
from mcheck.engines.protocol.analysis.model_equivalence import (
    has_equivalent_atomicity,
    has_equivalent_coherence,
    has_equivalent_orders,
)
from mcheck.engines.protocol.analysis.polling import find_awaited_value, is_redundant_poll, is_spin_loop
from mcheck.engines.protocol.analysis.shared_words import (
    ANY_WORD,
    accessed_words,
    may_contain,
    word_of,
    written_words,
)
from mcheck.engines.protocol.analysis.sole_writes import SoleWrites, Value, find_sole_writes
from mcheck.engines.protocol.state.sync_objects import Placement
from mcheck.ir import ops
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import scopes_are_mutual

REASON = "strong accesses may be reordered in ways that no interleaving shows (load buffering, 2+2W)"

_MANY = 1 << 30
"""More than there are barriers."""

MAX_STEPS = 20_000
"""Parts of cycles that are examined."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The part of a cycle in one thread.

    ``reads``: it enters at a read, else at a store; ``acquires`` and ``releases``: the scope at which the entry and the
    exit synchronise, if they do; ``depends``: the exit depends on what the entry reads; ``fenced``: the scope of a
    fence.sc in between. ``enters`` and ``leaves``: how many joint barriers of the CTA stand before the entry and the
    exit, at most and at least. ``locked``: it enters at a write of a lock. ``sole``: it enters at the sole write of
    this value; ``awaited``: it leaves from a swap that has waited for this one.
    """

    place: Placement
    entry: int
    reads: bool
    acquires: str | None
    depends: bool
    fenced: str | None = None
    exit: int = ANY_WORD
    releases: str | None = None
    enters: int = _MANY
    leaves: int = 0
    locked: bool = False
    sole: Value | None = None
    awaited: Value | None = None


@dataclass(frozen=True, slots=True)
class _WordOrders:
    """What is known of coherence."""

    locks: frozenset[int]
    sole: SoleWrites


@dataclass(slots=True)
class _OpenEntry:
    """An entry that a later write of its thread may leave from: its dependants, and the release fences since."""

    passage: Passage
    tainted: frozenset[str]
    released: str | None = None


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A meeting of threads that orders no memory, at which a thread ``arrives``, or ``waits`` for others."""

    of: tuple[str, int]
    arrives: bool
    waits: bool

    @property
    def word(self) -> int:
        """A number that stands for it, as for a word, and is none of memory."""
        kind, number = self.of
        return ANY_WORD - 1 - (3 * number + ("cluster", "warpgroup", "warp").index(kind))


def find_non_interleaving(
    program: Program,
    needed: list[frozenset[str]],
    partition: Partition,
    tape: Tape,
    ordered: frozenset[int] = frozenset(),
) -> str | None:
    """Return why interleavings may not cover all executions that matter; ``None`` if they do.

    On ``ordered`` words the order of atomics matters.
    """
    threads = [(program.threads[group[0]], len(group)) for group in partition]
    looked_at = {word for t, _ in threads for word in _observed_words(t, needed[t.index])} | ordered
    if not looked_at or not (ordered or _may_have_cycle(threads, needed, looked_at)):
        return None
    found: dict[Passage, set[int]] = {}
    joint = find_joint_barriers(program) if has_equivalent_orders(tape) else {}
    orders = _find_word_orders(program, tape)
    for k, (thread, many) in enumerate(threads):
        for passage in _find_passages(thread, needed[thread.index], looked_at, orders, joint.get(thread.index, ())):
            found.setdefault(passage, set()).update((k, -1 - k) if many > 1 else (k,))
    return REASON if _has_possible_cycle(found, tape) else None


def _find_word_orders(program: Program, tape: Tape) -> _WordOrders:
    if not has_equivalent_coherence(tape):
        return _WordOrders(frozenset(), SoleWrites())
    words = find_atomic_words(program)
    keeps = has_equivalent_orders(tape) and has_equivalent_atomicity(tape)
    return _WordOrders(find_lock_words(words) if keeps else frozenset(), find_sole_writes(words))


# --- what a thread does ---------------------------------------------------------------------------------------


def _find_observed(thread: Thread, pc: int, needed: frozenset[str]) -> tuple[tuple[int, ...], bool] | None:
    """Return the words whose values matter at ``pc``, and whether they are awaited; ``None`` if there are none."""
    op = thread.code[pc]
    inner = ops.performed_operation(op)
    waits = isinstance(op, ops.Await)
    if isinstance(inner, ops.Load) and (inner.sem != "weak" or waits):
        spun = waits or find_awaited_value(thread.code, thread.labels, pc) is not None
        used = any(r is not None and r.name in needed for r in inner.dsts)
        return (accessed_words(inner), spun) if spun or used else None
    if isinstance(inner, ops.Atomic):
        used = inner.dst is not None and inner.dst.name in needed
        return (accessed_words(inner), waits) if waits or used else None
    if isinstance(inner, ops.MbarrierWait):
        waits = waits or is_spin_loop(thread, pc)
        used = inner.dst is not None and inner.dst.name in needed
        if waits or (used and not is_redundant_poll(thread.code, thread.labels, pc)):
            return (word_of(inner.address),), waits
    return None


def _observed_words(thread: Thread, needed: frozenset[str]) -> Iterator[int]:
    for pc in range(len(thread.code)):
        found = _find_observed(thread, pc, needed)
        if found is not None:
            yield from found[0]


def _may_have_cycle(threads: list[tuple[Thread, int]], needed: list[frozenset[str]], looked_at: set[int]) -> bool:
    """Return whether there is a read that does not wait, or a word that several threads write."""
    stores: dict[int, int] = {}
    for thread, many in threads:
        code = map(ops.performed_operation, thread.code)
        own = {word for op in code if isinstance(op, ops.ScalarWrite) for word in written_words(op)}
        for word in own:
            stores[word] = stores.get(word, 0) + many
        for pc in range(len(thread.code)):
            found = _find_observed(thread, pc, needed[thread.index])
            if found is not None and not found[1]:
                return True
    return any(n > 1 and may_contain(word, looked_at) for word, n in stores.items()) or (
        ANY_WORD in stores and len(stores) > 1
    )


def unroll_loops_twice(thread: Thread) -> Iterator[int]:
    """Return the operations in program order, the body of every loop twice."""
    repeated: set[int] = set()
    pc = 0
    while pc < len(thread.code):
        yield pc
        op = thread.code[pc]
        if isinstance(op, ops.Branch) and thread.labels[op.target] <= pc and pc not in repeated:
            repeated.add(pc)
            pc = thread.labels[op.target]
            continue
        pc += 1


def _find_passages(
    thread: Thread, needed: frozenset[str], looked_at: set[int], orders: _WordOrders, joint: tuple[int, ...] = ()
) -> set[Passage]:
    """Return the passages of a thread, each once; ``joint`` are the places of joint barriers in its code."""
    cta = thread.place.cta
    place = (cta.gpu, cta.cluster, cta.number)
    found: set[Passage] = set()
    open_: dict[tuple[Passage, str | None], _OpenEntry] = {}

    def keep(entries: list[_OpenEntry]) -> dict[tuple[Passage, str | None], _OpenEntry]:
        out: dict[tuple[Passage, str | None], _OpenEntry] = {}
        for e in entries:
            key = e.passage, e.released
            out[key] = e if key not in out else replace(e, tainted=e.tainted & out[key].tainted)
        return out

    for pc in unroll_loops_twice(thread):
        op = thread.code[pc]
        inner = ops.performed_operation(op)
        defined, used = defined_and_used(op)
        entries = [_advance_entry(e, op, defined, used) for e in open_.values()]
        written = written_words(op)
        step = thread.index, pc
        sole, awaited = orders.sole.writes.get(step), orders.sole.swaps.get(step)
        plain = isinstance(inner, ops.ScalarAccess) and inner.multimem is None
        passed = sum(1 for at in joint if at < pc)
        enters, leaves = (passed, passed) if plain else (_MANY, 0)
        for word in written:
            sem = getattr(inner, "sem", "relaxed")
            mine = getattr(inner, "scope", None) if sem in ("release", "acq_rel") else None
            for e in entries:
                depends = e.passage.depends or (e.passage.reads and bool(e.tainted & used))
                released = mine or e.released
                found.add(
                    replace(e.passage, exit=word, releases=released, depends=depends, leaves=leaves, awaited=awaited)
                )
        meeting = _find_meeting(inner, thread)
        if meeting is not None and meeting.arrives:
            found.update(replace(e.passage, exit=meeting.word, releases=None) for e in entries)
        if meeting is not None and meeting.waits:
            entries.append(_OpenEntry(Passage(place, meeting.word, True, None, True), frozenset()))
        looked = _find_observed(thread, pc, needed)
        if looked is not None:
            acquires = getattr(inner, "scope", None) if getattr(inner, "sem", "") in ("acquire", "acq_rel") else None
            known = frozenset(defined | defined_and_used(inner)[0])
            writes = isinstance(inner, ops.ScalarWrite)
            entries += [
                _OpenEntry(
                    Passage(
                        place,
                        word,
                        True,
                        acquires,
                        looked[1],
                        enters=enters,
                        locked=writes and word in orders.locks,
                        sole=sole,
                    ),
                    known,
                )
                for word in looked[0]
            ]
        elif isinstance(inner, ops.ScalarWrite):
            # What an atomic returns decides nothing, but that it reads what comes right before it does (8.10.3).
            reads = isinstance(inner, ops.ScalarRead)
            acquires = (
                inner.scope if inner.sem in ("acquire", "acq_rel") and not getattr(inner, "is_red", False) else None
            )
            entries += [
                _OpenEntry(
                    Passage(place, word, reads, acquires, False, enters=enters, locked=word in orders.locks, sole=sole),
                    frozenset(),
                )
                for word in written
                if may_contain(word, looked_at)
            ]
        open_ = keep(entries)
    return found


def _find_meeting(op: Op, thread: Thread) -> _Meeting | None:
    """Return the part that an operation has in a meeting that orders no memory; ``None`` if it has none."""
    cta = thread.place.cta
    here = cta.number << 16 | thread.place.warp
    match op:
        case ops.ClusterBarrier(kind="arrive", sem="relaxed") | ops.ClusterBarrier(kind="wait"):
            return _Meeting(("cluster", cta.gpu << 32 | cta.cluster), op.kind == "arrive", op.kind == "wait")
        case ops.Commit(family="wgmma") | ops.WaitGroup(family="wgmma"):
            waits = isinstance(op, ops.WaitGroup)
            return _Meeting(("warpgroup", here >> 2), not waits, waits)
    return _Meeting(("warp", here), True, True) if op.facets.converges else None


def _advance_entry(e: _OpenEntry, op: Op, defined: set[str], used: set[str]) -> _OpenEntry:
    """Return an open entry after an operation: fences make it synchronise, branches add dependencies."""
    passage, tainted, released = e.passage, e.tainted, e.released
    if isinstance(op, ops.Fence) and op.restrict is None and op.guard is None:
        if op.sem in ("acquire", "acq_rel", "sc") and passage.reads and passage.acquires is None:
            # What it acquires, a release in front of it does not hand on.
            passage, released = replace(passage, acquires=op.scope or "sys"), None
        if op.sem in ("release", "acq_rel", "sc"):
            released = released or op.scope or "sys"
        if op.sem == "sc":
            passage = replace(passage, fenced=passage.fenced or op.scope or "sys")
    if tainted & used:
        if isinstance(op, ops.Branch):
            passage = replace(passage, depends=True)
        else:
            tainted |= defined
    elif isinstance(op, ops.Alu):
        tainted -= defined
    return _OpenEntry(passage, tainted, released)


# --- cycles -----------------------------------------------------------------------------------------------------


def _has_possible_cycle(found: dict[Passage, set[int]], tape: Tape) -> bool:
    """Return whether some cycle of passages through different threads is not forbidden."""
    into: dict[int, list[Passage]] = {}
    for passage in found:
        into.setdefault(passage.entry, []).append(passage)
    after: dict[Passage, list[Passage]] = {}
    for a, threads in found.items():
        words = list(into) if a.exit == ANY_WORD else [a.exit, ANY_WORD]
        after[a] = [
            b
            for word in words
            for b in into.get(word, ())
            if len(threads | found[b]) > 1
            and not (a.place == b.place and a.leaves > b.enters)
            and (a.awaited is None or a.awaited != b.sole)
        ]
    ranked = sorted(found, key=lambda p: p.reads and p.depends)  # a cycle of dependencies alone is forbidden
    search = _CycleSearch(found, after, {p: k for k, p in enumerate(ranked)}, tape)
    starts = (p for p in ranked if not (p.reads and p.depends) and _may_return(p, after))
    return any(search.can_close(p, [p], {thread}) for p in starts for thread in found[p])


def _may_return(start: Passage, after: dict[Passage, list[Passage]]) -> bool:
    """Return whether the successors lead from a passage to itself."""
    reached, left = set(after[start]), [*after[start]]
    while left and start not in reached:
        fresh = set(after[left.pop()]) - reached
        reached |= fresh
        left += fresh
    return start in reached


@dataclass(slots=True)
class _CycleSearch:
    """A search for cycles.

    ``after`` are the successors of each passage; a cycle starts at the passage with the smallest ``number``.
    """

    found: dict[Passage, set[int]]
    after: dict[Passage, list[Passage]]
    number: dict[Passage, int]
    tape: Tape
    steps: int = 0

    def can_close(self, start: Passage, path: list[Passage], used: set[int]) -> bool:
        """Return whether the path extends to a cycle that is not forbidden, or the search exceeds its limit."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            return True
        for b in self.after[path[-1]]:
            if b is start and len(path) > 1 and _may_be_consistent(path, self.tape):
                return True
            if self.number[b] > self.number[start]:
                for thread in self.found[b] - used:
                    if self.can_close(start, [*path, b], used | {thread}):
                        return True
        return False


def _may_be_consistent(cycle: list[Passage], tape: Tape) -> bool:
    """Return whether no axiom of the model is known to forbid the cycle."""
    if all(p.entry == p.exit != ANY_WORD for p in cycle) and has_equivalent_coherence(tape):
        return False  # accesses to one word keep their order (8.10.5)
    if not has_equivalent_orders(tape):
        return not all(b.reads and b.depends for b in cycle)
    if all(p.fenced is not None for p in cycle) and all(
        scopes_are_mutual(a.fenced or "", a.place, b.fenced or "", b.place) for a in cycle for b in cycle
    ):
        return False
    edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    loose = [(a, b) for a, b in edges if not _synchronises(a, b)]
    coherence = sum(1 for _, b in loose if not b.reads)
    synchronised = all(not b.reads for _, b in loose)
    if coherence:
        return coherence > 1 or not synchronised
    return not synchronised and not all(p.depends for p in cycle)


def _synchronises(a: Passage, b: Passage) -> bool:
    """Return whether the exit of ``a`` is a release that the entry of ``b`` acquires, or both are of one lock."""
    if b.locked and a.exit == b.entry:
        return True
    if a.releases is None or b.acquires is None:
        return False
    return scopes_are_mutual(a.releases, a.place, b.acquires, b.place)
