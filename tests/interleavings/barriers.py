"""Named barriers (9.7.13.1) and the barrier of a cluster (9.7.13.3), of threads that are warps of their own."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.ir.program import Thread as Declared
from tests.interleavings.state import Misuse, Round, State, Unclear

WARP = 32
Release = Callable[[State, int, int | None], State]
"""Lets a thread go on from its barrier, with the number that it gets."""


def arrive(
    state: State,
    declared: tuple[Declared, ...],
    index: int,
    called: tuple[int, int | None],
    brings: int | None,
    *,
    waits: bool,
) -> State:
    """A thread comes to the barrier that is ``called`` by its number and count; ``brings`` is a predicate if it
    reduces.
    """
    number, count = called
    wrong = []
    if not 0 <= number < 16:
        wrong.append("UB302")
    if (count is None and not waits) or (count is not None and (count <= 0 or count % WARP)):
        wrong.append("UB301")
    if wrong:
        raise Misuse(*wrong)
    cta = declared[index].place.cta.number
    rounds = dict(state.rounds)
    here = rounds.get((cta, number), Round(count, brings is not None, 0, ()))
    if here.reduces != (brings is not None):
        raise Misuse("UB304")
    if count != here.count:
        members = [t.index for t in declared if t.place.cta.number == cta]
        whole = len(members) * WARP
        if (count or whole) != (here.count or whole) and not any(state.threads[k].over for k in members):
            raise Misuse("UB304")
        raise Unclear  # whether none and the number of all are one, and of all that are left
    waiting = (*here.waiting, (index, brings or 0)) if waits else here.waiting
    rounds[cta, number] = here._replace(arrived=here.arrived + 1, waiting=tuple(sorted(waiting)))
    state = state._replace(rounds=tuple(sorted(rounds.items())))
    if not waits:
        return state
    return state.with_thread(index, state.threads[index]._replace(waits=("barrier", number)))


def complete(state: State, declared: tuple[Declared, ...], release: Release) -> State:
    """The state in which whoever may leave a barrier has left it: with a count when so many have come, without one when
    all have that have not exited.
    """
    for (cta, number), here in state.rounds:
        if here.count is None:
            living = [t for t in declared if t.place.cta.number == cta and not state.threads[t.index].over]
            done = len(living) == len(here.waiting)
        else:
            done = here.arrived * WARP == here.count
        if done:
            left = tuple(item for item in state.rounds if item[0] != (cta, number))
            state = state._replace(rounds=left)
            brought = [brings for _, brings in here.waiting]
            for index, _ in here.waiting:
                state = release(state, index, sum(brought) if here.reduces else None)
            return complete(state, declared, release)
    return _clusters(state, declared)


def arrive_in_cluster(state: State, index: int) -> State:
    """One arrival per round (9.7.13.3)."""
    thread = state.threads[index]
    if thread.arrived:
        raise Misuse("UB306")
    return state.with_thread(index, thread._replace(arrived=1))


def _clusters(state: State, declared: tuple[Declared, ...]) -> State:
    for place in {(t.place.cta.gpu, t.place.cta.cluster) for t in declared}:
        members = [t.index for t in declared if (t.place.cta.gpu, t.place.cta.cluster) == place]
        living = [k for k in members if not state.threads[k].over]
        if living and all(state.threads[k].arrived == 1 for k in living):
            for k in living:
                state = state.with_thread(k, state.threads[k]._replace(arrived=2))
    return state
