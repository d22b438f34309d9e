"""Barriers that all threads of a CTA execute first, in one order: how many of them stand before an operation.

An access before such a barrier precedes one behind it in causality order (PTX ISA 9.0 sections 8.9.4 and 9.7.13.1), so
neither does coherence lead back from the latter to the former (8.10.1), nor does the former read from it (8.10.6).
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import takewhile

from mcheck.ir import ops
from mcheck.ir.program import Program, Thread


def find_joint_barriers(program: Program) -> dict[int, tuple[int, ...]]:
    """The places of these barriers in the code of each thread, by its index."""
    first = {thread.index: _first_barriers(thread) for thread in program.threads}
    ctas: dict[Hashable, list[int]] = {}
    for thread in program.threads:
        ctas.setdefault(thread.place.cta, []).append(thread.index)
    found: dict[int, tuple[int, ...]] = {}
    for members in ctas.values():
        rounds = zip(*(first[k] for k in members), strict=False)
        joint = sum(1 for _ in takewhile(lambda one: len({number for _, number in one}) == 1, rounds))
        found.update({k: tuple(pc for pc, _ in first[k][:joint]) for k in members})
    return found


def _first_barriers(thread: Thread) -> list[tuple[int, object]]:
    """The barriers for all threads of the CTA that a thread executes before any branch or other meeting: the place and
    the number of each.
    """
    found: list[tuple[int, object]] = []
    targets = set(thread.labels.values())
    for pc, op in enumerate(thread.code):
        if pc in targets or isinstance(op, ops.Branch | ops.Exit):
            break
        if not isinstance(op, ops.Barrier):
            continue
        if op.kind != "sync" or op.count is not None or op.instance is not None or op.guard is not None:
            break
        found.append((pc, op.barrier))
    return found
