"""What asynchronous copies leave in memory, where what they read is known.

A copy takes effect here when it is issued. What a thread reads afterwards is the same whenever the copy does so: it is
complete before the read, and all that it reads is written before it is issued and not overwritten before it is
complete, or these accesses race, and the engine says so (PTX ISA 9.0 section 8.7). Reductions do not race with each
other: ``StrongWrites`` knows where their order decides. Nor does a strong copy race with strong accesses: what it
leaves is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mcheck.frontend.ptx.lane_arithmetic import is_floating, is_packed
from mcheck.ir import ops
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.copy_bytes import Run, bulk, cp_async
from mcheck.semantics.reductions import reduce
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.strong_writes import written_by_atomic
from mcheck.simt.instructions.recording import UNKNOWN_SIZE, Operands

_ONE = np.zeros(1, np.int64)


def copy_values(c: Cluster, found: Operands, j: int) -> None:
    """The values that ``cp.async`` leaves."""
    target, source, size = (int(found[name][0][j]) for name in ("dst", "src", "size"))
    if UNKNOWN_SIZE in found:
        c.store.forget(target, size)
        return
    taken = int(found["src_size"][0][j]) & 0xFFFFFFFF if "src_size" in found else None
    ignored = "ignore_src" in found and bool(found["ignore_src"][0][j])
    _move(c, target, source, size, cp_async(size, taken, ignored))


def copy_bulk_values(c: Cluster, op: ops.BulkCopy, found: Operands, j: int, lane: int, target: int, size: int) -> None:
    """The values that ``cp.async.bulk`` of a lane leaves at one of its destinations, or ``cp.reduce.async.bulk``."""
    source = int(found["src"][0][j])
    if op.reduce is not None and op.multimem is None:
        _reduce(c, op, lane, target, source, size)
    elif op.is_strong or op.multimem is not None:
        c.store.forget(target, size)
    else:
        mask = int(found["byte_mask"][0][j]) if "byte_mask" in found else None
        _move(c, target, source, size, bulk(size, mask))


def _move(c: Cluster, target: int, source: int, size: int, runs: Iterable[Run]) -> None:
    if not _is_followed(c, source, size):
        c.store.forget(target, size)
        return
    for run in runs:
        c.strong_writes.add_weak([target + run.dst], run.length)
        if run.src is None:
            c.store.clear(target + run.dst, run.length)
        else:
            c.store.move(target + run.dst, source + run.src, run.length)
            c.strong_writes.move(target + run.dst, source + run.src, run.length)


def _is_followed(c: Cluster, address: int, size: int) -> bool:
    """Whether copies of what these bytes hold are followed: not if the initial contents of a word there are assumed."""
    assumed = (*c.counters.sizes.items(), *((at, len(lock.contents)) for at, lock in c.counters.locks.items()))
    return (
        c.follows_copied_values
        and not c.copy_varies
        and not any(at < address + size and address < at + count for at, count in assumed)
    )


def _reduce(c: Cluster, op: ops.BulkCopy, lane: int, target: int, source: int, size: int) -> None:
    """Each element is updated by an atomic of its own, which no barrier orders before what comes later."""
    assert op.type is not None and op.reduce is not None
    numbers = not (is_floating(op.type) or is_packed(op.type))
    if not numbers or not all(c.store.knows_any(at, size) and _is_followed(c, at, size) for at in (source, target)):
        c.store.forget(target, size)
        return
    width = type_size(op.type)
    for k in range(0, size - width + 1, width):
        at = np.array([target + k], np.uint64)
        operand, unknown = c.store.load(np.array([source + k], np.uint64), width, _ONE)
        old, lost = c.store.load(at, width, _ONE)
        what = written_by_atomic(op.reduce, op.type, c.strong_writes.now)
        c.strong_writes.add_write(lane, target + k, width, what, completes_later=True)
        c.strong_writes.move(target + k, source + k, width)
        if unknown[0] or lost[0]:
            c.store.forget(target + k, width)
            continue
        new = reduce(op.reduce, op.type, int(old[0]), int(operand[0]))
        c.store.save(at, width, _ONE, np.array([new], np.uint64), np.zeros(1, np.uint8))
