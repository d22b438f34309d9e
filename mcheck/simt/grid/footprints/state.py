"""The registers of the lanes in terms of the coordinates: slopes, the lanes without a known form, and the conditions on
the coordinates under which a register has the value it has here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.grid.footprints.affine_forms import ALWAYS, NEVER, Conditions, ConditionTable, Coordinates
from mcheck.simt.grid.footprints.class_names import NamedBytes, slope_names
from mcheck.simt.grid.footprints.coordinate_taint import COORDINATES
from mcheck.simt.grid.footprints.space import AXES, MAX_SYMBOLS, Space
from mcheck.simt.parametric.affine import Slopes, Value

Indices = NDArray[np.int64]


@dataclass(slots=True)
class CoordinateState:
    """Forms of registers. Rows in none of the tables are the same in all clusters."""

    space: Space
    compiler: Compiler = field(init=False)
    table: ConditionTable = field(init=False)
    coordinates: Coordinates = field(init=False)
    slopes: dict[int, Slopes] = field(default_factory=dict)
    bad: dict[int, Mask] = field(default_factory=dict)
    when: dict[int, Conditions] = field(default_factory=dict)
    names: dict[int, Word] = field(default_factory=dict)
    """The class names of registers in the lanes where they are ``bad``, if stored values matter."""
    named: NamedBytes | None = None
    """Class names of bytes; ``None`` if no stored value matters."""
    widths: Sequence[int] = ()
    """The bits of each register."""
    box: tuple[int, int, int] = (1, 1, 1)
    """The extents of what is executed, in clusters."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """The extents of a cluster, in CTAs."""

    def begin(self, compiler: Compiler) -> None:
        """Initialise before the first step."""
        self.compiler = compiler
        self.table = ConditionTable(self.space)
        self.coordinates = Coordinates(0, 0, 0, space=self.space)
        if compiler.code.stores_decide:
            self.named = NamedBytes.empty(int(compiler.lanes.cta.max()) + 1, compiler.places.shared_size)
        self.widths = [type_bits(r.type) for u in compiler.code.units for r in u.function.registers]
        self.box, self.cluster = compiler.lanes.launch.together, compiler.lanes.launch.cluster

    def may_differ(self, rows: Iterable[int]) -> bool:
        """Whether one of these registers may differ in other clusters, in any lane."""
        return any(row in self.slopes or row in self.bad or row in self.when for row in rows)

    def value(self, unit: Unit, operand: ptx.Operand, fetch: Fetch, lanes: Indices) -> tuple[Value, Conditions]:
        """An operand of some lanes, with the condition under which it has this form."""
        count = self.compiler.lanes.count
        base = np.broadcast_to(fetch()[0], (count,))[lanes]
        slopes = np.zeros((MAX_SYMBOLS, len(lanes)), np.int64)
        bad, when = np.zeros(len(lanes), np.bool_), np.zeros(len(lanes), np.int32)
        match operand:
            case ptx.Special(name) if name in COORDINATES:
                self._coordinate(name, slopes)
            case ptx.Address(ptx.Special(name)) if name in COORDINATES:
                self._coordinate(name, slopes)
        inner = operand.base if isinstance(operand, ptx.Address) else operand  # coordinates are read by themselves
        for register in operand_registers(inner) if inner is not None else ():
            row = unit.frame + register.index
            if row in self.slopes:
                slopes = self.slopes[row][:, lanes]
            if row in self.bad:
                bad = self.bad[row][lanes]
            if row in self.when:
                when = self.when[row][lanes]
            if isinstance(operand, ptx.Part):
                bad = bad | slopes.any(axis=0)
        return Value(base, slopes, bad), when

    def _coordinate(self, name: str, slopes: Slopes) -> None:
        register, _, axis = name.partition(".")
        number = "xyz".index(axis)
        if self.space.low[number] == self.space.high[number]:
            return
        slopes[number] = self.box[number] * (self.cluster[number] if register == "ctaid" else 1)

    def set_form(
        self, row: int, lanes: Indices, value: Value | None, when: Conditions | None = None,
        name: Word | None = None,
    ) -> None:  # fmt: skip
        """Set the form of a register in some lanes; without a value it is the same in all clusters. ``name`` are the
        class names of bad values, fresh ones if they are not given.
        """
        count = self.compiler.lanes.count
        if self.named is not None and value is not None and value.bad.any():
            self.names.setdefault(row, np.zeros(count, np.uint64))[lanes] = (
                self.named.fresh(lanes) if name is None else name
            )
        slopes = None if value is None or not value.slopes.any() else np.where(value.bad, 0, value.slopes)
        _set_rows(self.slopes, row, lanes, slopes, (MAX_SYMBOLS, count), np.int64)
        _set_rows(self.bad, row, lanes, None if value is None or not value.bad.any() else value.bad, (count,), np.bool_)
        _set_rows(self.when, row, lanes, None if when is None or not when.any() else when, (count,), np.int32)

    def set_unknown(self, rows: Iterable[int], lanes: Indices) -> None:
        """Mark these registers as unknown in other clusters."""
        count = len(lanes)
        nothing = Value(np.zeros(count, np.uint64), np.zeros((MAX_SYMBOLS, count), np.int64), np.ones(count, np.bool_))
        for row in rows:
            self.set_form(row, lanes, nothing)

    def set_same(self, rows: Iterable[int], lanes: Indices) -> None:
        """Mark these registers as the same in all clusters."""
        for row in rows:
            if self.may_differ((row,)):
                self.set_form(row, lanes, None)

    def form_names(self, slopes: Slopes) -> Word:
        """The class names of affine forms."""
        return slope_names(slopes)

    def class_name(self, value: Value, row: int | None, lanes: Indices) -> Word:
        """The class name of an operand of some lanes, which is that register or none."""
        assert self.named is not None
        found = self.form_names(value.slopes)
        if not value.bad.any():
            return found
        mine = self.names.get(row) if row is not None and row in self.bad else None
        return np.where(value.bad, self.named.fresh(lanes) if mine is None else mine[lanes], found)

    def require_values(self, row: int, lanes: Indices, reason: str, span: Span | None) -> None:
        """Restrict the class to the clusters in which a register has its form."""
        if row in self.when and not self.table.require(self.when[row][lanes], span):
            self.space.isolate(reason, span)

    def conditions(self, row: int, lanes: Indices) -> Conditions:
        """The conditions under which a register is the same in other clusters."""
        out = np.zeros(len(lanes), np.int32)
        if row in self.when:
            out = self.when[row][lanes]
        if row in self.bad or row in self.slopes:
            never = np.zeros(len(lanes), np.bool_)
            if row in self.bad:
                never = never | self.bad[row][lanes]
            if row in self.slopes:
                never = never | self.slopes[row][:, lanes].any(axis=0)
            out = np.where(never, NEVER, out).astype(np.int32)
        return out

    def require_same(self, rows: Iterable[int], lanes: Indices, reason: str, span: Span | None) -> None:
        """Restrict the class to the clusters in which these registers have the same values."""
        for row in rows:
            if self.may_differ((row,)) and not self.table.require(self.conditions(row, lanes), span):
                self.space.isolate(reason, span)


def _set_rows(
    table: dict[int, NDArray[np.int64]] | dict[int, Mask] | dict[int, Conditions],
    row: int, lanes: Indices, given: NDArray[np.int64] | Mask | Conditions | None, shape: tuple[int, ...], kind: type,
) -> None:  # fmt: skip
    if given is None:
        if row not in table:
            return
        table[row][..., lanes] = 0
        if len(lanes) == shape[-1] or not table[row].any():
            del table[row]
        return
    if row not in table:
        table[row] = np.zeros(shape, kind)
    table[row][..., lanes] = given


__all__ = ["ALWAYS", "AXES", "NEVER", "CoordinateState", "Indices"]
