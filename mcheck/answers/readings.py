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
            codes = list({tuple(map(id, t.code)): t for t in warp}.values())
            found = [Counter(op.span.line for op in t.code if _is_aligned(op) and op.span is not None) for t in codes]
            yield from {line for one in found for line in one if any(one[line] != other[line] for other in found)}
            yield from (line for thread in codes for line in _left_to_registers(thread))


def _is_aligned(op: Op) -> bool:
    return isinstance(op, Barrier | ClusterBarrier) and op.aligned


def _left_to_registers(thread: Thread) -> Iterator[int]:
    """Lines of aligned barriers that a guard, or an earlier branch or exit, may skip."""
    skipped = 0  # the instructions before this index may have been skipped
    for k, op in enumerate(thread.code):
        if _is_aligned(op) and op.span is not None and (op.guard is not None or skipped > k):
            yield op.span.line
        elif isinstance(op, Branch) and (op.guard is not None or op.condition is not None):
            skipped = max(skipped, thread.labels.get(op.target, 0))
        elif isinstance(op, Exit) and op.guard is not None:
            skipped = len(thread.code)
