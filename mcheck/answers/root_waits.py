"""Which waits of a deadlock are its cause: the others only wait for threads that are stuck at these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op


def find_roots(needs: Sequence[Collection[int]]) -> frozenset[int]:
    """The waits from which no chain of needs leads to one that does not lead back: those that need no other one, and
    the cycles. ``needs`` has for each wait those whose threads would have to go on first.
    """
    reached = [_reach(needs, k) for k in range(len(needs))]
    return frozenset(k for k, others in enumerate(reached) if all(k in reached[other] for other in others - {k}))


def _reach(needs: Sequence[Collection[int]], start: int) -> set[int]:
    found: set[int] = set()
    left = list(needs[start])
    while left:
        k = left.pop()
        if k not in found:
            found.add(k)
            left += needs[k]
    return found


def find_signal(code: Iterable[Op], address: int, *, mbarrier: bool) -> Op | None:
    """The first operation that signals the mbarrier, or writes the word, at a constant address."""
    for op in code:
        if mbarrier:
            target = ops.mbarrier_of(op) if op.facets.signals else None
        else:
            target = op.address if isinstance(op, ops.ScalarWrite) else None
        if target == Const(address):
            return op
    return None
