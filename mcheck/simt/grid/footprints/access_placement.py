"""Placement of a cluster's accesses in global memory, in terms of its coordinates."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.memory_layout import GAP, PARAM_BASE, UNKNOWN_SIZE
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.grid.footprints.affine_forms import ALWAYS, NEVER, Conditions
from mcheck.simt.grid.footprints.footprint import ANY, SOMEWHERE, Footprint, Form
from mcheck.simt.grid.footprints.space import Slopes, trim_slopes
from mcheck.simt.grid.footprints.state import CoordinateState, Indices
from mcheck.simt.instructions.access_operands import to_generic

GLOBAL = GLOBAL_BASE + GAP
"""Parameters lie before it."""
DEPENDS = "the address of '{}' depends on %ctaid"
UNALIGNED = "the alignment of '{}' depends on %ctaid"


@dataclass(frozen=True, slots=True)
class AccessKind:
    """How an instruction accesses the memory that it names."""

    kind: str
    size: int
    unit: int = 0
    proxy: str = "generic"
    plain: bool = False
    aligned: int = 1


@dataclass(slots=True)
class AccessPlacement(CoordinateState):
    """Recorder of placed accesses. ``optional`` are the conditions under which the current lanes make theirs, if they
    may omit them.
    """

    footprint: Footprint = field(init=False)
    optional: Conditions | None = None
    tainted_memory: set[str] = field(default_factory=set)
    """The memories that hold stored values that depend on the coordinates: "own" (the lane's), "shared", "global"."""
    bases: NDArray[np.int64] = field(init=False)
    ends: NDArray[np.int64] = field(init=False)
    sized: NDArray[np.bool_] = field(init=False)

    def begin(self, compiler: Compiler) -> None:
        CoordinateState.begin(self, compiler)
        found = [i for i in compiler.places.memory.instances if GLOBAL <= i.base < SHARED_BASE]
        found.sort(key=lambda i: i.base)
        self.footprint = Footprint(self.space, tuple(found))
        self.bases = np.array([i.base for i in found], np.int64)
        self.ends = np.array([i.base + i.object.size for i in found], np.int64)
        self.sized = np.array([i.object.size != UNKNOWN_SIZE for i in found], np.bool_)

    def _require_placed(self, statement: ptx.Statement, when: Conditions) -> None:
        """Require a condition on which the address of an access depends."""
        if not self.table.require(when, statement.span):
            self.space.isolate(f"the place that '{statement.text}' accesses depends on %ctaid", statement.span)

    def _record_unplaced(self, statement: ptx.Statement, kind: str) -> None:
        form = Form(buffer=ANY, kind=kind, sure=False, whole=True)
        self.footprint.add(form, statement.span, SOMEWHERE)

    def _buffer(self, address: int) -> int | None:
        found = int(np.searchsorted(self.bases, address, side="right")) - 1
        return found if found >= 0 and address < self.ends[found] else None

    def record_access(
        self, unit: Unit, statement: ptx.Statement, place: ptx.Address, fetch: Fetch, lanes: Indices, kind: AccessKind,
        *, offset: NDArray[np.uint64] | None = None,
    ) -> None:  # fmt: skip
        """Record an access of these lanes at the addresses of an operand."""
        value, when = self.value(unit, place, fetch, lanes)
        at = to_generic(value.base + offset if offset is not None else value.base).astype(np.int64)
        if when.any():
            self._require_placed(statement, when)
        ours = (at >= GLOBAL) & (at < SHARED_BASE)
        if value.bad.any() or not ours.all():
            shared = ~ours & ~((at >= PARAM_BASE) & (at < GLOBAL))
            if value.bad.any() or value.slopes[:, shared].any():
                self.space.isolate(DEPENDS.format(statement.text), statement.span)
            if value.bad.any():
                self._record_unplaced(statement, kind.kind)
            ours &= ~value.bad
        if kind.size == 0 and (value.slopes[:, ours] % kind.aligned).any():
            self.space.isolate(UNALIGNED.format(statement.text), statement.span)
        if not ours.any() or kind.size == 0:
            return
        optional = None if self.optional is None else self.optional[ours]
        at, slopes = at[ours], value.slopes[:, ours]
        buffers = np.searchsorted(self.bases, at, side="right") - 1
        for buffer in distinct(buffers).tolist():
            if buffer < 0:
                continue
            mine = np.flatnonzero((buffers == buffer) & (at < self.ends[buffer]))
            if not len(mine):
                continue
            for some, (by,) in group_by_slopes(slopes[:, mine, None]):
                chosen = mine[some]
                self._record(statement, kind, buffer, at[chosen], by, None if optional is None else optional[chosen])

    def _record(
        self, statement: ptx.Statement, kind: AccessKind, buffer: int, at: Indices, by: Slopes, when: Conditions | None
    ) -> None:
        if any(slope % kind.aligned for slope in by):
            self.space.isolate(UNALIGNED.format(statement.text), statement.span)
        if by and self.sized[buffer]:
            low, high = self._span(by, when, len(at))
            if (at + low < self.bases[buffer]).any() or (at + high + kind.size > self.ends[buffer]).any():
                self.footprint.outside[int(self.bases[buffer]), statement.span] = None
        sure = when is None or not when.any()
        form = Form(
            buffer=int(self.bases[buffer]), kind=kind.kind, slopes=(by,), lengths=(kind.size,), unit=kind.unit,
            proxy=kind.proxy, sure=sure, plain=kind.plain,
        )  # fmt: skip
        self.footprint.add(form, statement.span, distinct(at)[:, None])

    def _span(self, by: Slopes, when: Conditions | None, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The range within which accesses move with the coordinates, as far as the lanes make them."""
        least, most = self.space.bound_form_exactly(by)
        low, high = np.full(count, least, np.int64), np.full(count, most, np.int64)
        for number in distinct(when).tolist() if when is not None else ():
            if number in (ALWAYS, NEVER):
                continue
            some = when == number
            for slopes, bound in self.table.sets[number]:
                for sign, table in ((1, high), (-1, low)):
                    times = _common_multiple(by, slopes, sign)
                    if times:
                        table[some] = sign * np.minimum(sign * table[some], times * bound)
        return low, high


def _common_multiple(by: Slopes, of: Slopes, sign: int) -> int:
    """The natural number m with ``m * of == sign * by``; 0 if there is none."""
    if len(by) != len(of) or not of:
        return 0
    times, rest = divmod(sign * by[-1], of[-1])
    return times if not rest and times > 0 and all(sign * b == times * o for b, o in zip(by, of, strict=True)) else 0


def group_by_slopes(slopes: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], tuple[Slopes, ...]]]:
    """Group lanes by their slopes in all dimensions (symbols, lanes, dimensions); yields the lanes and those slopes."""
    count = slopes.shape[1]
    if not (slopes != slopes[:, :1]).any():
        return [(np.arange(count), tuple(trim_slopes(column) for column in slopes[:, 0].T.tolist()))]
    flat = slopes.transpose(1, 0, 2).reshape(count, -1)
    kinds, back = np.unique(flat, axis=0, return_inverse=True)
    out = []
    for n, kind in enumerate(kinds):
        columns = kind.reshape(slopes.shape[0], slopes.shape[2]).T.tolist()
        out.append((np.flatnonzero(back.reshape(-1) == n), tuple(trim_slopes(column) for column in columns)))
    return out
