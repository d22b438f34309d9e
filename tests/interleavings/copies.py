"""Asynchronous copies as agents: after their issue they act at any moment (8.9.1.1, 9.7.9.25).

A copy with an mbarrier, and ``cp.async``, reads, writes and tells in one step; one of a bulk group reads first, which
is as far as ``.read`` waits. Taken apart further they would do no more that is certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.interleavings import mbarriers
from tests.interleavings.arithmetic import brought
from tests.interleavings.memory import Store
from tests.interleavings.state import Copy, Misuse, State, Thread

Groups = tuple[tuple[Copy, ...], ...]


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


def over(groups: Groups, pending: int, *, read: bool) -> bool:
    """Whether all but so many of the latest committed groups are complete, or have read their sources."""
    done = groups[:-1]
    awaited = done[: len(done) - pending] if pending else done
    return all(read and c.held is not None for group in awaited for c in group)


def steps(store: Store, state: State, index: int) -> Iterator[tuple[str, State | Misuse]]:
    """What the copies of a thread may do next, and the arrivals that follow them."""
    thread = state.threads[index]
    for copy in sorted(thread.copies):
        slow = copy.mbarrier is None and any(copy in group for group in thread.bulk)
        try:
            if slow and copy.held is None:
                reading = copy._replace(held=_bytes(store, state, copy))
                yield f"reads: {copy.text}", state.with_thread(index, _replaced(thread, copy, reading))
            else:
                yield f"acts: {copy.text}", _performed(store, state, index, copy)
        except Misuse as wrong:
            yield f"acts: {copy.text}", wrong
    for k, (address, after) in enumerate(thread.signals):
        if not after:
            left = thread._replace(signals=thread.signals[:k] + thread.signals[k + 1 :])
            try:
                yield "arrives for its copies", mbarriers.arrive(state.with_thread(index, left), address, 1)[0]
            except Misuse as wrong:
                yield "arrives for its copies", wrong


def _bytes(store: Store, state: State, copy: Copy) -> tuple[int | None, ...]:
    address, size = copy.source
    at = _place(store, state, address, size) if size else 0
    return (*state.memory[at : at + size], *(0,) * (copy.target[1] - size))


def _place(store: Store, state: State, address: int, size: int) -> int:
    if any(place < address + size and address < place + 8 for place, _ in state.objects):
        raise Misuse("UB202", "UB203")
    return store.place(address, size)


def _performed(store: Store, state: State, index: int, copy: Copy) -> State:
    held = _bytes(store, state, copy) if copy.held is None else copy.held
    address, size = copy.target
    if size:
        at = _place(store, state, address, size)
        if copy.adds:
            held = _added(state.memory[at : at + size], held, copy.adds)
        state = store.put(state, at, held)
    state = state.with_thread(index, _replaced(state.threads[index], copy, None))
    return state if copy.mbarrier is None else mbarriers.complete(state, copy.mbarrier, size)


def _added(old: tuple[int | None, ...], new: tuple[int | None, ...], element: int) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for k in range(0, len(old), element):
        a, b = old[k : k + element], new[k : k + element]
        if None in a or None in b:
            found += [None] * element
        else:
            total = int.from_bytes(bytes(a), "little") + int.from_bytes(bytes(b), "little")  # type: ignore[arg-type]
            found += brought(f"u{8 * element}", total).to_bytes(element, "little")
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
        loose=change(thread.loose),
        signals=signals,
    )
