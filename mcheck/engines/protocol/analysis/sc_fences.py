"""Check whether the order of ``fence.sc`` matters (PTX ISA 9.0 section 8.10.2).

Where no observation fixes it, it decides what a strong load after a fence may return. A load that waits for a value
only waits longer, and atomics read the latest write whatever the fences do. For weak accesses the order would only hide
races that the opposite order has: a pair that no other causality orders is unordered with the fences the other way
round. So a program without a strong load that reads once need not be explored in both orders, unless races that lack
only a proxy fence in one of the orders are to be reported as such.
"""

from __future__ import annotations

from mcheck.engines.protocol.analysis.polling import find_awaited_value
from mcheck.ir import ops
from mcheck.ir.program import Program, Thread


def sc_order_matters(program: Program) -> bool:
    """Return whether the program has ``fence.sc`` and a strong load that does not wait for a value."""
    threads = list({id(t.code): t for t in program.threads}.values())
    return has_sc_fence(program) and any(_is_single_read(t, pc) for t in threads for pc in range(len(t.code)))


def has_sc_fence(program: Program) -> bool:
    """Return whether the program has ``fence.sc`` at all, for models without the property above."""
    return any(isinstance(op, ops.Fence) and op.sem == "sc" for op in program.operations)


def _is_single_read(thread: Thread, pc: int) -> bool:
    op = thread.code[pc]
    if not isinstance(op, ops.Load) or (op.sem == "weak" and not op.volatile):
        return False
    return op.guard is not None or find_awaited_value(thread.code, thread.labels, pc) is None
