"""Assumptions of an answer about points on which the text of the PTX ISA can be read in several ways."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from mcheck.ir.ops import Barrier, Branch, ClusterBarrier, Exit, Op
from mcheck.ir.program import Program, Thread

EXITED = (
    "an aligned barrier does not wait for threads of its warp that have exited (9.7.13.1, open question Q33), line {}: "
    "compute-sanitizer's synccheck may report it"
)


def list_readings(program: Program) -> tuple[str, ...]:
    """The readings of the ISA that an answer about a program rests on."""
    lines = sorted(set(_not_by_all(program)))
    return (EXITED.format(", ".join(map(str, lines))),) if lines else ()


def _not_by_all(program: Program) -> Iterator[int]:
    """Lines of aligned barriers that some threads of a warp may execute less often than others."""
    if not any(map(_is_aligned, program.operations)):
        return
    warps: dict[tuple[int, int], list[Thread]] = defaultdict(list)
    for thread in program.threads:
        warps[thread.place.own_warp].append(thread)
    for warp in warps.values():
        if len(warp) > 1:
            found = [Counter(op.span.line for op in t.code if _is_aligned(op) and op.span is not None) for t in warp]
            yield from {line for one in found for line in one if any(one[line] != other[line] for other in found)}
            different = {tuple(map(id, t.code)): t for t in warp}
            yield from (line for t in different.values() for line in _left_to_registers(t))


def _is_aligned(op: Op) -> bool:
    return isinstance(op, Barrier | ClusterBarrier) and op.aligned


def _left_to_registers(thread: Thread) -> Iterator[int]:
    """Lines of aligned barriers that a guard, or an earlier branch or exit, may skip."""
    for k, op in enumerate(thread.code):
        if not _is_aligned(op) or op.span is None:
            continue
        if op.guard is not None or any(_may_pass(thread, before, k) for before in thread.code[:k]):
            yield op.span.line


def _may_pass(thread: Thread, op: Op, at: int) -> bool:
    """Whether ``op`` may skip the instruction at index ``at``: a branch beyond it, or an exit."""
    if isinstance(op, Branch):
        return (op.guard is not None or op.condition is not None) and thread.labels.get(op.target, 0) > at
    return isinstance(op, Exit) and op.guard is not None
