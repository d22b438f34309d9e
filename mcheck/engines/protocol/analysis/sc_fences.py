"""Check whether the order of ``fence.sc`` matters (PTX ISA 9.0 section 8.10.2).

Where no observation fixes it, it decides what a strong load after a fence may return. A load that waits for a value
only waits longer, and atomics read the latest write whatever the fences do. For weak accesses the order would only hide
races that the opposite order has: a pair that no other causality orders is unordered with the fences the other way
round. So a program without a strong load that reads once behind a fence need not be explored in both orders, unless
races that lack only a proxy fence in one of the orders are to be reported as such.

A load is in front of every fence if its CTA is alone and meets at a barrier behind the load and in front of all fences:
an order of fences ends at a fence, and what follows in causality is behind the barrier, too (9.7.13.1).
"""

from __future__ import annotations

from mcheck.engines.protocol.analysis.polling import find_awaited_value
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread


def sc_order_matters(program: Program) -> bool:
    """Return whether the program has ``fence.sc`` and a strong load that does not wait for a value, behind a fence."""
    if not has_sc_fence(program):
        return False
    threads = list({id(t.code): t for t in program.threads}.values())
    singles = [(t, pc) for t in threads for pc in range(len(t.code)) if _is_single_read(t, pc)]
    fenceless = _find_fenceless_starts(program, threads) if singles else {}
    return any(pc >= fenceless.get(id(t.code), 0) for t, pc in singles)


def has_sc_fence(program: Program) -> bool:
    """Return whether the program has ``fence.sc`` at all, for models without the property above."""
    return any(isinstance(op, ops.Fence) and op.sem == "sc" for op in program.operations)


def _is_single_read(thread: Thread, pc: int) -> bool:
    op = thread.code[pc]
    if not isinstance(op, ops.Load) or (op.sem == "weak" and not op.volatile):
        return False
    return op.guard is not None or find_awaited_value(thread.code, thread.labels, pc) is None


def _find_fenceless_starts(program: Program, threads: list[Thread]) -> dict[int, int]:
    """Return by code the position of a barrier of all threads behind which all ``fence.sc`` are; nothing if there is
    none, or if the arrivals at it cannot be counted in the code.
    """
    codes = [t.code for t in threads]
    apart = len({t.place.cta for t in program.threads}) > 1
    if apart or any(isinstance(op, ops.Branch) for code in codes for op in code):
        return {}
    barriers = [[pc for pc, op in enumerate(code) if isinstance(op, ops.Barrier)] for code in codes]
    if not all(
        _meets_all(code[pc], len(program.threads)) for code, at in zip(codes, barriers, strict=True) for pc in at
    ):
        return {}
    in_front = []
    for code, at in zip(codes, barriers, strict=True):
        first = next((pc for pc, op in enumerate(code) if isinstance(op, ops.Fence) and op.sem == "sc"), len(code))
        in_front.append(sum(pc < first for pc in at))
    common = min(in_front)
    found = {id(code): at[common - 1] for code, at in zip(codes, barriers, strict=True)} if common else {}
    leaves = any(isinstance(op, (ops.Exit, ops.Trap)) for code in codes for op in code[: found.get(id(code), 0)])
    return {} if leaves else found


def _meets_all(op: Op, threads: int) -> bool:
    """Return whether an operation is barrier 0, and every thread of the CTA waits for all others at it."""
    if not isinstance(op, ops.Barrier) or op.kind == "arrive" or op.guard is not None or op.barrier != Const(0):
        return False
    return op.count is None or (isinstance(op.count, Const) and op.count.value == threads)
