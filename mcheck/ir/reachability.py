"""Which operations a thread may still come to from a place in its code."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.program import Thread


def furthest_back(thread: Thread) -> list[int]:
    """For each place, the first one that can be come to from there."""
    first = list(range(len(thread.code) + 1))
    for at in range(len(thread.code) - 1, -1, -1):
        op = thread.code[at]
        target = thread.labels[op.target] if isinstance(op, ops.Branch) else at
        first[at] = min(target, first[at + 1], at)
    for at, before in enumerate(first):
        first[at] = min(before, first[before])  # of the places further in front that is known by now
    return first


def last_barriers(thread: Thread) -> dict[int | None, int]:
    """By number, the last place of a barrier of the CTA; under ``None`` that of one whose number is not written."""
    places = ((k, ops.performed_operation(op)) for k, op in enumerate(thread.code))
    return {getattr(op.barrier, "value", None): k for k, op in places if isinstance(op, ops.Barrier)}


def last_of(barriers: dict[int | None, int], number: int) -> int:
    """The last place of ``last_barriers`` at which a thread may come to the barrier with a number; -1 if to none."""
    return max(barriers.get(number, -1), barriers.get(None, -1))
