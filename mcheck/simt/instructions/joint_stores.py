"""Lanes that store to one place by one instruction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import WARP, Quality
from mcheck.simt.instructions.access_operands import Indices, first_of_each, quote_statement

BARRIERS = (ops.Barrier, ops.WarpSync, ops.ClusterBarrier)
MAX_COPY = 16
"""The bytes of a ``cp.async``, at most."""


def distinct_stores(
    c: Cluster, statement: ptx.Statement, address: Word, size: int, given: list[tuple[Word, Quality]], lanes: Indices
) -> Indices:
    """Of lanes of a CTA that store by one instruction, one lane for each place and value (indices into ``lanes``).

    Of unknown values, those with one name count as one; of a warp's unknown values any two do. Compilers let all lanes
    that hold a value store it, those of a warp the result that a reduction leaves in each of them. If lanes of a warp
    write to one place by one instruction, one of the writes takes effect (CUDA C++ programming guide). CTAs of a
    cluster execute instructions of their own, as those of two clusters do: their stores are in conflict (8.7).

    The store of the lane that stands for the others is in program order behind its own accesses, theirs are not. So it
    is one that has not accessed the bytes since its last barrier. If all have, any is in conflict with another one.
    """
    one = np.arange(len(lanes))
    if len(distinct(address)) == len(one):
        return one
    cta = c.lanes.cta[lanes].astype(np.uint64)
    if given:
        open_ = np.bitwise_or.reduce([q for _, q in given]) & ~np.uint8(taint.UNKNOWN)
        own = np.where(open_ != 0, lanes + 1, 0).astype(np.uint64)
        one = _lanes_without_accesses(c, [address, cta, own, *(v for v, _ in given)], size, lanes)
        if len(one) < len(lanes):
            said = f"lanes that store one value to one place count as one store: {quote_statement(statement)}"
            c.recorded.assumptions[said] = None
    key = [address, (lanes // WARP).astype(np.uint64)]
    for value, q in given:
        key += [np.where(q == 0, value, np.uint64(0)), (q == 0).astype(np.uint64)]
    left = one[_lanes_without_accesses(c, [word[one] for word in key], size, lanes[one])]
    if len(left) < len(one):
        quoted = quote_statement(statement)
        said = f"if lanes of a warp store to one place at once, one of the stores takes effect: {quoted}"
        c.recorded.assumptions[said] = None
    if len(left) < len(lanes):
        c.recorded.joint_stores.add(statement.span)
    c.recorded.has_conflicting_stores |= len(first_of_each([address[left], cta[left]])) < len(left)
    return left


def _lanes_without_accesses(c: Cluster, key: list[Word], size: int, lanes: Indices) -> Indices:
    """The index of one lane for each distinct row of a table whose first column are addresses: of the first lane, if
    there is none that has not accessed the bytes there since its last barrier.
    """
    address, found = key[0], first_of_each(key)
    if len(found) == len(lanes):
        return found
    out = []
    table = np.stack(key)
    for first in found.tolist():
        alike = np.flatnonzero((table == table[:, first : first + 1]).all(axis=0)).tolist()
        low = int(address[first])
        fresh = (k for k in alike if not _has_accessed(c, int(lanes[k]), low, low + size))
        out.append(next(fresh, first) if len(alike) > 1 else first)
    return np.sort(np.array(out, np.int64))


def _has_accessed(c: Cluster, lane: int, low: int, high: int) -> bool:
    """Whether a lane has accessed some of these bytes since its last barrier."""
    code, (read, found) = c.recorded.code[lane], c.recorded.since_barriers.get(lane, (0, set()))
    for op in code[read:]:
        if isinstance(op, BARRIERS):
            found.clear()
        else:
            found.update(_accessed(performed_operation(op), lane))
    c.recorded.since_barriers[lane] = len(code), found
    if any(one.touches(lane, low, high) for one in c.recorded.repeated_accesses):
        return True
    return any(at < high and low < end for at, end in found)


def _accessed(op: Op, lane: int) -> Iterator[tuple[int, int]]:
    """The beginning and the end of what a lane accesses."""
    size = type_size(op.type) * op.scalar_count if isinstance(op, ops.Load | ops.Store | ops.Atomic) else MAX_COPY
    for name in (*op.facets.reads, *op.facets.writes):
        match getattr(op, name):
            case Const(at):
                yield at, at + size
            case Lanes(values):
                yield values[lane % WARP], values[lane % WARP] + size
