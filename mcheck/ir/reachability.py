"""Reachability in a thread's code: the operations that it may still execute from a position."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.program import Thread


def earliest_reachable(thread: Thread) -> list[int]:
    """For each position, the lowest position that is reachable from there."""
    first = list(range(len(thread.code) + 1))
    for at in range(len(thread.code) - 1, -1, -1):
        op = thread.code[at]
        target = thread.labels[op.target] if isinstance(op, ops.Branch) else at
        first[at] = min(target, first[at + 1], at)
    for at, before in enumerate(first):
        first[at] = min(before, first[before])  # of the places further in front that is known by now
    return first


def last_barrier_positions(thread: Thread) -> dict[int | None, int]:
    """By number, the last position of a CTA barrier; under ``None`` that of one whose number is not a constant."""
    places = ((k, ops.performed_operation(op)) for k, op in enumerate(thread.code))
    return {getattr(op.barrier, "value", None): k for k, op in places if isinstance(op, ops.Barrier)}


def last_barrier_position(barriers: dict[int | None, int], number: int) -> int:
    """The last position of a barrier that may have this number, by ``last_barrier_positions``; -1 if there is none."""
    return max(barriers.get(number, -1), barriers.get(None, -1))
