"""The global memory that asynchronous copies access: ``cp.async``, ``cp.async.bulk``, tensor copies by maps of the
launch.

*Why arguments about pairs hold with copies.* They show that where a pair orders a point in the code of one cluster
before one of the other, the grid does. What a copy reads or writes is ordered with points of its own cluster by what
that does alone: it comes behind its issue, and before what waits for its completion, by groups or mbarriers. All of
that is in the pair as it is in the grid, and so are the proxy fences of both. Those of other clusters are left out,
which orders less. Base causality order is transitive, and what makes it proxy-preserved is on the parts of the way
that pair and grid have in common (8.9.5).

A copy is issued in program order, but its accesses are not: they may race with others of their own thread, and begin
or end later than what is beside them. So each copy is a segment of its own (``mcheck.simt.grid.pairs.conflicts``).
Nothing depends on what copies bring to shared memory: it is data that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.effects.dispatch import tensor_copy_effect
from mcheck.effects.operands import evaluate_operands
from mcheck.effects.site import Layout, Site
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread
from mcheck.semantics.copy_bytes import CHUNK
from mcheck.simt.distinct import distinct
from mcheck.simt.grid.pairs.global_places import Numbers, numbers_of, places_of
from mcheck.simt.grid.pairs.reduction import NotReducible

ANYWHERE = Const(0)
"""In place of an operand that does not count."""
BY_COORDINATES = 0
"""The alignment of places that are no addresses of the instruction."""
Copy = ops.CpAsync | ops.BulkCopy | ops.TensorCopy


@dataclass(frozen=True, slots=True)
class Ranges:
    """As many bytes from each of ``starts``, by the lanes of these numbers among those that execute the copy. None are
    accessed where a copy has nothing to do; even then its address has to be aligned.
    """

    starts: Numbers
    size: int
    members: Numbers


@dataclass(frozen=True, slots=True)
class Copied:
    """What some lanes of a warp access by a copy. ``shape`` is what else it does, ``role`` what of that may order
    accesses.
    """

    ranges: tuple[Ranges, ...]
    alignment: int
    writes: bool
    strong: bool
    shape: object
    role: Op | type[Op]
    group: str | None
    """The family of the groups by which its thread may wait for it."""

    @property
    def is_of_thread(self) -> bool:
        """Whether it makes no difference in which warp of its CTA a thread executes it."""
        return isinstance(self.role, type)


def read_copy(op: Op, threads: Sequence[Thread], layout: Layout) -> Copied | None:
    """What these threads of a warp access of global memory by a copy; ``None`` of any other operation. Raises
    ``NotReducible``.
    """
    match op:
        case ops.CpAsync():
            return _plain_copy(op, threads)
        case ops.BulkCopy() if op.multimem is None:
            return _bulk_copy(op, threads)
        case ops.TensorCopy() if not op.unplaced:
            return _tensor_copy(op, threads, layout)
    return None


def _plain_copy(op: ops.CpAsync, threads: Sequence[Thread]) -> Copied:
    lanes = [t.place.lane for t in threads]
    size = numbers_of(op.size, lanes)
    copied = size if op.src_size is None else np.minimum(size, numbers_of(op.src_size, lanes) & 0xFFFFFFFF)
    if op.ignore_src is not None:
        copied = np.where(numbers_of(op.ignore_src, lanes) != 0, 0, copied)
    ranges = tuple(_ranges(op.src, lanes, copied))
    return Copied(ranges, int(size.max()), False, False, replace(op, src=ANYWHERE), ops.CpAsync, "cp.async")


def _bulk_copy(op: ops.BulkCopy, threads: Sequence[Thread]) -> Copied | None:
    if "global" not in (op.src_space, op.dst_space):
        return None
    lanes = [t.place.lane for t in threads]
    writes = op.dst_space == "global"
    ranges = tuple(_ranges(op.dst if writes else op.src, lanes, numbers_of(op.size, lanes)))
    shape = replace(op, dst=ANYWHERE) if writes else replace(op, src=ANYWHERE)
    role = replace(op, dst=ANYWHERE, src=ANYWHERE) if op.cta_mask is None else shape
    group = "bulk" if op.mbar is None else None
    return Copied(ranges, CHUNK, writes, op.reduce is not None or op.is_strong, shape, role, group)


def _ranges(place: Expr, lanes: Sequence[int], sizes: Numbers) -> Iterator[Ranges]:
    """The bytes from a place on, lanes with as many together."""
    for size in distinct(sizes).tolist():
        members = np.flatnonzero(sizes == size)
        mine = [lanes[k] for k in members.tolist()]
        starts = places_of(place, mine) if size else numbers_of(place, mine)
        if starts is None:
            raise NotReducible("a copy is not of global memory")
        yield Ranges(starts, int(size), members)


def _tensor_copy(op: ops.TensorCopy, threads: Sequence[Thread], layout: Layout) -> Copied:
    """A box lies in an object as a whole, or is refused; how much of it is in the tensor is part of the shape."""
    ranges: list[Ranges] = []
    inside: list[object] = []
    for number, thread in enumerate(threads):
        site = Site(layout, thread.place)
        operands = evaluate_operands(op, partial(_number, lane=thread.place.lane))
        found = layout.objects.at(operands.address("tensor_map"))
        maps = () if found is None else found.object.tensor_map
        if found is None or len(maps) != 1 or found.base != operands.address("tensor_map"):
            raise NotReducible("the tensor map of a copy is not followed", op.span)
        effect = tensor_copy_effect(op, operands, site, maps[0])
        if effect.faults or effect.box is None:
            raise NotReducible("an operand of a tensor copy is not as it has to be", op.span)
        rows = effect.box.rows()
        inside.append((tuple(size for _, size in rows), effect.box.image()))
        member = np.array([number], np.int64)
        ranges += [Ranges(np.array([at], np.int64), size, member) for at, size in rows]
    shape = replace(op, coords=())
    writes, group = op.kind != "load", "bulk" if op.mbar is None else None
    strong = op.reduce is not None
    return Copied(tuple(ranges), BY_COORDINATES, writes, strong, (shape, *inside), shape, group)


def _number(operand: Expr, lane: int) -> int:
    return int(numbers_of(operand, [lane])[0])


def read_prefetch(op: ops.Prefetch, lanes: Sequence[int]) -> Copied:
    """What these lanes of a warp have of a prefetch: it accesses nothing. Raises ``NotReducible``."""
    ranges = () if op.src is None else tuple(_ranges(op.src, lanes, np.zeros(len(lanes), np.int64)))
    shape = replace(op, src=None if op.src is None else ANYWHERE, coords=())
    return Copied(ranges, CHUNK, False, False, shape, ops.Prefetch, None)
