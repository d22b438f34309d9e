"""Detection of ``.aligned`` instructions that only some lanes of a warp execute, which is undefined.

Such an instruction is in the code of a leader, or in a branch on the lane's number (PTX ISA 9.0 sections 9.7.13.3,
9.7.13.16 and 9.7.19.5). An operation that reports the undefined behaviour is inserted before each.

Barriers do not wait for threads that have exited (Q33), so lanes must execute different barriers; of other
instructions one that a lane does not execute is enough. Those of wgmma and ``bar`` are compared when they are
executed, as that may depend on guards.

The warps of a warpgroup must execute the same wgmma instructions and the same setmaxnreg, too (9.7.15.5.2 and
9.7.19.5). Warps of one role are compared; a warp of another role may have its number for no reason.
"""

from __future__ import annotations

from collections import defaultdict

from mcheck.base.errors import Span
from mcheck.frontend.litmus.warps import replace_operations
from mcheck.ir.aligned_operations import (
    DIVERGENT_BARRIERS,
    aligned_statement,
    explain_divergent_warps,
    explain_divergent_wgmma,
    is_wgmma,
)
from mcheck.ir.ops import (
    Alu,
    ClusterBarrier,
    Commit,
    DivergentAligned,
    Exit,
    Load,
    Op,
    Store,
    TensormapCopyFence,
)
from mcheck.ir.program import Thread

KINDS = frozenset((TensormapCopyFence, ClusterBarrier, Alu, Load, Store))


def mark_divergent(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The threads, with an operation that reports undefined behaviour before each divergent aligned instruction."""
    warps: dict[tuple[int, int], list[tuple[Thread, list[Op]]]] = defaultdict(list)
    for thread in threads:
        warps[thread.place.own_warp].append((thread, _aligned(thread)))
    wrong: dict[int, dict[Span, DivergentAligned]] = {}
    for warp in warps.values():
        spans = [{op.span for op in own} for _, own in warp]
        if any(there != spans[0] for there in spans):
            wrong |= {t.index: found for t, own in warp if (found := _find_divergent(own, [x for _, x in warp]))}
    threads = (
        tuple(_insert_by_span(t, wrong[t.index]) if t.index in wrong else t for t in threads) if wrong else threads
    )
    unlike = _find_unlike_warps(threads)
    return tuple(_insert_at(t, unlike[t.index]) if t.index in unlike else t for t in threads) if unlike else threads


def _aligned(thread: Thread) -> list[Op]:
    """The instructions of a thread that are compared, and all its cluster barriers."""
    return [op for op in thread.code if type(op) in KINDS and _is_compared(op)]


def _is_compared(op: Op) -> bool:
    """Whether lanes must execute this one together: of computations setmaxnreg, of accesses ldmatrix and stmatrix."""
    match op:
        case Alu():
            return _sets_registers(op)
        case Load() | Store():
            return op.matrix_rows > 0
    return True


def is_aligned_instruction(op: Op) -> bool:
    """Whether all threads of a warp, or of a warpgroup, must execute an instruction."""
    return _of_warpgroups(op) or (type(op) in KINDS and _is_compared(op))


def _of_warpgroups(op: Op) -> bool:
    return is_wgmma(op) or (isinstance(op, Commit) and op.family == "wgmma") or _sets_registers(op)


def _sets_registers(op: Op) -> bool:
    return type(op) is Alu and op.text.startswith("setmaxnreg")


def _find_unlike_warps(threads: tuple[Thread, ...]) -> dict[int, dict[int, DivergentAligned]]:
    """By thread and position in its code: the first instruction that another warp of its role and warpgroup lacks, or
    has another one instead of.
    """
    groups: dict[object, dict[int, list[Thread]]] = defaultdict(lambda: defaultdict(list))
    for thread in threads:
        groups[thread.role, thread.place.warpgroup][thread.place.warp].append(thread)
    found: dict[int, dict[int, DivergentAligned]] = {}
    for warps in groups.values():
        if len(warps) == 1:
            continue
        lists = {warp: max((_iterations(t) for t in lanes), key=len) for warp, lanes in warps.items()}
        for warp, own in lists.items():
            others = [other for k, other in lists.items() if k != warp and other != own]
            first, other = min(
                ((_common_prefix(own, other), other) for other in others), default=(len(own), own), key=_first
            )
            for thread in warps[warp] if first < len(own) else ():
                places = _places(thread)
                if first < len(places):
                    op = thread.code[places[first]]
                    instead = other[first][1] if first < len(other) else None
                    found[thread.index] = {
                        places[first]: _make_divergent(
                            op, "UB307", explain_divergent_warps(aligned_statement(op), instead)
                        )
                    }
    return found


def _first(found: tuple[int, object]) -> int:
    return found[0]


def _places(thread: Thread) -> list[int]:
    """The positions of the instructions that all warps of a warpgroup execute, up to the end of the thread."""
    last = max(thread.labels.values(), default=-1)
    ends = (k for k, op in enumerate(thread.code) if k >= last and isinstance(op, Exit) and op.guard is None)
    return [k for k, op in enumerate(thread.code[: next(ends, len(thread.code))]) if _of_warpgroups(op)]


def _iterations(thread: Thread) -> list[tuple[str, tuple[int, int, bool]]]:
    """These instructions, each by its iterations of the enclosing loops and its source location."""
    turns = thread.iterations
    return [
        (turns.label_at(k) if turns is not None else "", aligned_statement(thread.code[k])) for k in _places(thread)
    ]


def _common_prefix(a: list[tuple[str, tuple[int, int, bool]]], b: list[tuple[str, tuple[int, int, bool]]]) -> int:
    """The length of the common prefix."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _insert_at(thread: Thread, wrong: dict[int, DivergentAligned]) -> Thread:
    return replace_operations(thread, lambda at, op: [wrong[at], op] if at in wrong else [op])


def _find_divergent(own: list[Op], warp: list[list[Op]]) -> dict[Span, DivergentAligned]:
    """The instructions of a thread that are undefined because other lanes of its warp lack them, by location."""
    found: dict[Span, DivergentAligned] = {}
    others = [({op.span for op in there}, there) for there in warp]
    for op in own:
        span = op.span
        if span is None or op.guard is not None or all(span in spans for spans, _ in others):
            continue
        if not isinstance(op, ClusterBarrier):
            found[span] = _make_divergent(op, "UB307", explain_divergent_wgmma(None))
        elif op.aligned and any(span not in spans and _has_other_barrier(op, there, own) for spans, there in others):
            found[span] = _make_divergent(op, "UB305", DIVERGENT_BARRIERS)
    return found


def _has_other_barrier(op: ClusterBarrier, there: list[Op], own: list[Op]) -> bool:
    """Whether another thread, which lacks this barrier, has one of its kind that this thread lacks."""
    spans = {o.span for o in own}
    return any(isinstance(o, ClusterBarrier) and o.kind == op.kind and o.span not in spans for o in there)


def _make_divergent(op: Op, code: str, reason: str) -> DivergentAligned:
    return DivergentAligned(code=code, reason=reason, span=op.span, text=op.text, section=op.section)


def _insert_by_span(thread: Thread, wrong: dict[Span, DivergentAligned]) -> Thread:
    return replace_operations(
        thread, lambda _, op: [wrong[op.span], op] if op.span is not None and op.span in wrong else [op]
    )
