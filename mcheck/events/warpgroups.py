"""Warpgroup-wide wgmma groups (PTX ISA 9.0 sections 9.7.15 and 9.7.15.7.2).

A wgmma-group is the warpgroup's: the n-th ``commit_group`` of every thread of the warpgroup makes its n-th group, and a
``wait_group`` of any of them is over when all have committed the groups that it waits for and what these read has been
read. Only declared threads exist, and those without a ``commit_group`` in their code take no part.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.cat.tags import Tag
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.ir.ops import Commit
from mcheck.ir.program import Program, Thread
from mcheck.semantics.terms import Uid

Warpgroup = tuple[int, int]


def is_committer(thread: Thread) -> bool:
    """Whether a thread takes part in the wgmma-groups of its warpgroup."""
    return any(isinstance(op, Commit) and op.family == "wgmma" for op in thread.code)


def committing_threads(program: Program, warpgroup: Warpgroup) -> tuple[int, ...]:
    """The threads that commit the groups of a warpgroup."""
    return _committers(program).get(warpgroup, ())


_LATEST: list[tuple[Program, dict[Warpgroup, tuple[int, ...]]]] = []
"""The program that was asked about last: every commit of a group asks, and the answer reads the code of all threads."""


def _committers(program: Program) -> dict[Warpgroup, tuple[int, ...]]:
    """The threads that commit groups, by warpgroup."""
    for known, found in _LATEST:
        if known is program:
            return found
    found = {}
    for thread in program.threads:
        if is_committer(thread):
            found[thread.place.warpgroup] = (*found.get(thread.place.warpgroup, ()), thread.index)
    _LATEST[:] = [(program, found)]
    return found


def group_key(warpgroup: Warpgroup, number: int) -> tuple[object, ...]:
    """The key of the synchronisation of the threads that have committed their ``number``-th group, from 1."""
    return ("group", *warpgroup, number)


def number_of(event: Event) -> int | None:
    """The number of the wgmma-group at whose synchronisation an event is, ``None`` if at none."""
    step = event.barrier
    if step is None or step.key[0] != "group":
        return None
    number = step.key[-1]
    assert isinstance(number, int)
    return number


def completions(s: Structure) -> Iterator[tuple[Uid, Uid]]:
    """Accesses of asynchronous operations with the waits for their groups: that of any thread of the warpgroup is one
    for the reads of all of them.
    """
    reads: dict[tuple[Warpgroup, int], list[Uid]] = {}
    for path in s.paths:
        open_: list[Uid] = []
        for event in path.events:
            number = number_of(event)
            if Tag.WGMMA in event.tags:
                open_.append(event.uid)
            elif number is not None and Tag.MEET in event.tags:
                reads.setdefault((s.program.threads[path.thread].place.warpgroup, number), []).extend(open_)
                open_ = []
    for path in s.paths:
        yield from path.completes
        own = set(path.completes)
        warpgroup = s.program.threads[path.thread].place.warpgroup
        for event in path.events:
            number = number_of(event)
            if number is not None and Tag.GROUPWAIT in event.tags:
                for n in range(1, number + 1):
                    others = ((memory, event.uid) for memory in reads.get((warpgroup, n), ()))
                    yield from (pair for pair in others if pair not in own)
