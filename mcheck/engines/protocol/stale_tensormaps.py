"""Tensor maps that race: a copy may use the map as it was before a write, or as it is after it.

An execution uses the map as written so far in the order of its steps, as if a fence were in between. Where the whole
program reads a map once and writes it once, a copy can use at most two maps. Running every execution again with the
maps as they were at the start then shows everything that the older map leads to
(``mcheck.engines.protocol.findings_answer``).
"""

from __future__ import annotations

from mcheck.engines.protocol.execution.setup import points_into
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread

MAP_READS = ops.TensorCopy | ops.Prefetch


def has_one_map_write(program: Program) -> bool:
    """Whether the program reads one tensor map, once, and writes that map at most once."""
    reads = [(t, op) for t in program.threads for op in t.code if isinstance(op, MAP_READS)]
    if len(reads) != 1 or _repeats(reads[0][0]):
        return False
    place = getattr(reads[0][1], "tensor_map", None)
    instance = program.memory.find(place.value) if isinstance(place, Const) else None
    if instance is None:
        return False
    bytes_of_map = [(instance.base, instance.base + instance.object.size)]
    others = [
        (t, op) for t in program.threads for op in t.code if _may_access_map(op) and points_into(op, bytes_of_map)
    ]
    return len(others) <= 1 and not any(_repeats(thread) for thread, _ in others)


def _may_access_map(op: Op) -> bool:
    """Whether an operation is neither the read nor a fence."""
    return not isinstance(op, MAP_READS | ops.ProxyFence)


def _repeats(thread: Thread) -> bool:
    """Whether a thread may execute anything twice."""
    return any(isinstance(op, ops.Branch) and thread.labels[op.target] <= pc for pc, op in enumerate(thread.code))
