"""Asynchronous copies as agents: after their issue they act at any moment (8.9.1.1, 9.7.9.25).

A copy with an mbarrier, and ``cp.async``, reads, writes and tells in one step; one of a bulk group reads first, which
is as far as ``.read`` waits. Taken apart further they would do no more that is certain. What ``wgmma`` reads is a copy
to nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.program import Thread as Declared
from tests.interleavings import mbarriers, tensors
from tests.interleavings.arithmetic import brought, combined, size_of
from tests.interleavings.memory import Store
from tests.interleavings.state import NOWHERE, Copy, Misuse, Ranges, State, Thread, Unclear

Groups = tuple[tuple[Copy, ...], ...]
Bytes = tuple[int | None, ...]


def fresh(thread: Thread) -> int:
    """The least number that no copy of a thread has."""
    used = {c.name for c in thread.copies}
    return next(k for k in range(len(used) + 1) if k not in used)


def trimmed(groups: Groups) -> Groups:
    """Groups without those that are over and have none before them: they count for no wait any more."""
    while len(groups) > 1 and not groups[0]:
        groups = groups[1:]
    return groups


def committed(groups: Groups) -> Groups:
    """A new open group."""
    return trimmed((*groups, ()))


def added(groups: Groups, copy: Copy) -> Groups:
    """The copy in the open group."""
    return (*groups[:-1], tuple(sorted((*groups[-1], copy))))


def over(groups: Groups, pending: int, *, read: bool) -> bool:
    """Whether all but so many of the latest committed groups are complete, or have read their sources."""
    done = groups[:-1]
    awaited = done[: len(done) - pending] if pending else done
    return all(read and c.held is not None for group in awaited for c in group)


def steps(
    store: Store, declared: tuple[Declared, ...], state: State, index: int
) -> Iterator[tuple[str, Copy | None, State | Misuse | None]]:
    """What the copies of a thread may do next, and the arrivals that follow them; nothing where nobody knows."""
    thread = state.threads[index]
    for copy in sorted(thread.copies):
        slow = copy.mbarrier is None and any(copy in group for group in thread.bulk)
        verb = "reads" if slow and copy.held is None else "acts"
        try:
            found = tensors.resolved(store, state, copy)
            if verb == "reads":
                reading = found._replace(held=_bytes(store, state, found), box=None)
                after = state.with_thread(index, _replaced(thread, copy, reading))
            else:
                after = _performed(store, declared, state, index, copy, found)
            yield f"{verb}: {copy.text}", copy, after
        except Misuse as wrong:
            yield f"{verb}: {copy.text}", copy, wrong
        except Unclear:
            yield f"{verb}: {copy.text}", copy, None
    for k, (address, after) in enumerate(thread.signals):
        if not after:
            left = thread._replace(signals=thread.signals[:k] + thread.signals[k + 1 :])
            try:
                yield "arrives for its copies", None, mbarriers.arrive(state.with_thread(index, left), address, 1)[0]
            except Misuse as wrong:
                yield "arrives for its copies", None, wrong


def gone(declared: tuple[Declared, ...], state: State, address: int) -> bool:
    """Whether an address is in the shared memory of a CTA whose threads have all exited."""
    if address < SHARED_BASE:
        return False
    cta = (address - SHARED_BASE) // SHARED_WINDOW
    there = [t.index for t in declared if t.place.cta.number == cta]
    return bool(there) and all(state.threads[k].over for k in there)


def left_behind(declared: tuple[Declared, ...], state: State) -> bool:
    """Whether a bulk copy still reads or writes shared memory of a CTA whose threads have all exited (open question
    Q18).
    """
    for thread in state.threads:
        for copy in (*thread.loose, *(c for group in thread.bulk for c in group)):
            if copy.box is None and not copy.source:
                continue  # st.async, of which the question says nothing
            read = [] if copy.held is not None else [a for a, _ in copy.source]
            if any(gone(declared, state, a) for a in (*read, *(a for a, _ in copy.target)) if a != NOWHERE):
                return True
    return False


def _bytes(store: Store, state: State, copy: Copy) -> Bytes:
    found: list[int | None] = []
    for address, size in copy.source:
        if address == NOWHERE:
            found += [0] * size
        else:
            at = _place(store, state, address, size)
            found += state.memory[at : at + size]
    return (*found, *(0,) * (copy.bytes - len(found)))


def _place(store: Store, state: State, address: int, size: int) -> int:
    if any(place < address + size and address < place + 8 for place, _ in state.objects):
        raise Misuse("UB202", "UB203")
    return store.place(address, size)


def _performed(
    store: Store, declared: tuple[Declared, ...], state: State, index: int, copy: Copy, found: Copy
) -> State:
    """The state behind a copy that acts, which has been ``found`` to do so where it has a tensor map."""
    own = declared[index].place.cta.number
    places = [a for a, _ in (*found.source, *found.target) if a != NOWHERE]
    for address in (*places, *([copy.mbarrier] if copy.mbarrier is not None else [])):
        if (address - SHARED_BASE) // SHARED_WINDOW != own and gone(declared, state, address):
            raise Misuse("UB502", "UB504")
    held = _bytes(store, state, found) if copy.held is None else copy.held
    state = _written(store, state, found, held)
    state = state.with_thread(index, _replaced(state.threads[index], copy, None))
    return state if copy.mbarrier is None else mbarriers.complete(state, copy.mbarrier, found.bytes)


def _written(store: Store, state: State, copy: Copy, held: Bytes) -> State:
    done = 0
    for address, size in copy.target:
        new = held[done : done + size]
        done += size
        if address == NOWHERE:
            continue
        at = _place(store, state, address, size)
        if copy.reduce:
            new = _reduced(state.memory[at : at + size], new, copy)
        state = store.put(state, at, new)
    return state


def _reduced(old: Bytes, new: Bytes, copy: Copy) -> Bytes:
    found: list[int | None] = []
    element = size_of(copy.type)
    for k in range(0, len(old), element):
        a, b = old[k : k + element], new[k : k + element]
        if None in a or None in b:
            found += [None] * element
        else:
            here, brings = (brought(copy.type, int.from_bytes(bytes(x), "little")) for x in (a, b))  # type: ignore[arg-type]
            total = combined(copy.reduce, copy.type, here, [brings])
            found += (total % (1 << 8 * element)).to_bytes(element, "little")
    return tuple(found)


def pieces(address: int, size: int, mask: int) -> Ranges:
    """The bytes of each 16 that a mask names, the others being left out (9.7.9.25.4.1)."""
    found: list[tuple[int, int]] = []
    for k in range(size):
        at = address + k if mask >> k % 16 & 1 else NOWHERE
        start, length = found[-1] if found else (NOWHERE, 0)
        if found and (at == start == NOWHERE or (at != NOWHERE and start != NOWHERE and at == start + length)):
            found[-1] = start, length + 1
        else:
            found.append((at, 1))
    return tuple(found)


def _replaced(thread: Thread, copy: Copy, new: Copy | None) -> Thread:
    """The thread with a copy elsewhere, or over; then what waits for it waits for the others."""

    def change(group: tuple[Copy, ...]) -> tuple[Copy, ...]:
        kept = [c for c in group if c != copy]
        return tuple(sorted(kept if new is None or copy not in group else [*kept, new]))

    signals = thread.signals
    if new is None:
        signals = tuple(sorted((address, after - {copy.name}) for address, after in signals))
    return thread._replace(
        plain=trimmed(tuple(map(change, thread.plain))),
        bulk=trimmed(tuple(map(change, thread.bulk))),
        wgmma=tuple(map(change, thread.wgmma)),
        loose=change(thread.loose),
        signals=signals,
    )
