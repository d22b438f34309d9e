"""Registers that must be invariant for all values of a parameter, or that grow with it in a known way
(``mcheck.simt.parametric.affine``), while a cluster is executed with one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.launch import AnyNumber, Argument
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.isa.kinds import COLLECTIVES, REDUCTIONS, STORES, WARPGROUP, Kind
from mcheck.simt.execution.cluster import EXITED, Cluster
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import BeforeStep, LoopMark
from mcheck.simt.parametric.affine import Numbers, Value

BEFORE, INSIDE, AFTER = range(3)
"""The part of its trace a lane is in: before the mark in its loop, in the period after it, or later."""
ADDRESSED = (STORES - {Kind.FILL}) | REDUCTIONS | {Kind.ATOMIC, Kind.MATRIX_LOAD, Kind.MATRIX_STORE}
"""Instructions whose effect does not depend on the values that they store."""


@dataclass(slots=True)
class InvariantRegisters:
    """The registers of all lanes. ``period`` is the increment of the parameter that adds one period, 0 if only the next
    numbers are considered.
    """

    numbers: Numbers
    argument: Argument
    period: int = 0
    marks: Mapping[int, LoopMark] = field(default_factory=dict)
    compiler: Compiler = field(init=False)
    slopes: NDArray[np.int64] = field(init=False)
    bad: Mask = field(init=False)
    bad_since: dict[int, ptx.Statement] = field(default_factory=dict)
    """By register, the instruction that made it bad."""
    part: NDArray[np.int8] = field(init=False)
    heads: NDArray[np.int64] = field(init=False)
    """By lane, where its loop begins, and the number of its backward jumps."""
    count: NDArray[np.int64] = field(init=False)
    """By lane, where its loop begins, and how often it has jumped back there."""

    @property
    def stand_ins(self) -> frozenset[int]:
        """The rows of registers whose values stand for others."""
        return frozenset[int]().union(*(p.stand_ins for _, p in self.argument.places if isinstance(p, AnyNumber)))

    def begin(self, compiler: Compiler) -> None:
        """Initialise before the first step: nothing is known of any register."""
        self.compiler = compiler
        lanes, rows = compiler.lanes.count, compiler.code.rows
        self.slopes = np.zeros((3, rows, lanes), np.int64)
        self.bad = np.ones((rows, lanes), np.bool_)
        self.part = np.zeros(lanes, np.int8)
        self.heads = np.array([self.marks[k].head if k in self.marks else -1 for k in range(lanes)], np.int64)
        self.count = np.zeros(lanes, np.int64)

    def _value(self, unit: Unit, operand: ptx.Operand, fetch: Fetch, lanes: NDArray[np.int64]) -> Value:
        base = np.broadcast_to(fetch()[0], self.part.shape)[lanes]
        slopes, bad = np.zeros((3, len(lanes)), np.int64), np.zeros(len(lanes), np.bool_)
        if isinstance(operand, ptx.Special) and operand.name not in self.compiler.lanes.special:
            bad[:] = True
        for register in operand_registers(operand):
            row = unit.frame + register.index
            slopes, bad = self.slopes[:, row, lanes], self.bad[row, lanes]
            if isinstance(operand, ptx.Part):
                bad = bad | slopes.any(axis=0)
        return Value(base, slopes, bad)

    def _require_invariant(self, statement: ptx.Statement, register: ptx.Register, row: int, mask: Mask) -> None:
        """Raises ``Aperiodic`` unless a register is the same for all numbers."""
        if self.bad[row, mask].any():
            raise Aperiodic(f"{register.name} in '{statement.text}'{self._describe_source(row)}", statement.span)
        if self.slopes[:, row, mask].any():
            raise Aperiodic(f"{register.name} in '{statement.text}', which grows", statement.span)

    def _describe_source(self, row: int) -> str:
        made = self.bad_since.get(row)
        return f", which '{made.text}' (line {made.span.line}) makes" if made is not None else ""

    def _set(self, rows: Iterable[int], lanes: NDArray[np.int64], statement: ptx.Statement,
             slopes: NDArray[np.int64] | int, bad: Mask | bool) -> None:  # fmt: skip
        for row in rows:
            self.slopes[:, row, lanes] = np.where(bad, 0, slopes)
            self.bad[row, lanes] = bad
            if np.any(bad):
                self.bad_since[row] = statement

    def _wanted(self, unit: Unit, found: Iterable[ptx.Register]) -> list[tuple[ptx.Register, int]]:
        rows = [(r, unit.frame + r.index) for r in dict.fromkeys(found)]
        return [(r, row) for r, row in rows if row in self.compiler.code.needed_rows]

    def _require_operands(self, unit: Unit, statement: ptx.Statement, used: Iterable[ptx.Register]) -> BeforeStep:
        """Require the operands of an instruction to be the same for all numbers."""
        kind = statement.kind
        rows = self._wanted(unit, used)
        targets = [row for _, row in self._wanted(unit, statement.defs)]
        collective = kind in COLLECTIVES
        known = collective or kind is Kind.MBARRIER_WAIT

        def before(c: Cluster, mine: Mask) -> None:
            for register, row in rows:
                self._require_invariant(statement, register, row, mine)
            if collective:
                self._require_convergence(c, statement, mine)
            self._set(targets, np.flatnonzero(mine), statement, 0, bad=not known)

        return before

    def _require_convergence(self, c: Cluster, statement: ptx.Statement, mine: Mask) -> None:
        """Require that all lanes of the warps exchange values, in the same iteration of their loops."""
        there = mine.reshape(-1, WARP)
        if (np.asarray(there.any(axis=1))[:, None] & ~there & (c.status != EXITED).reshape(-1, WARP)).any():
            raise Aperiodic(f"'{statement.text}', which lanes of a warp execute one after the other", statement.span)
        for warp in np.flatnonzero(there.any(axis=1)).tolist():
            lanes = warp * WARP + np.flatnonzero(there[warp])
            far = {
                (int(self.part[k]), *((int(self.heads[k]), int(self.count[k])) if self.part[k] == INSIDE else ()))
                for k in lanes.tolist()
                if self.heads[k] >= 0
            }
            alone = bool((self.heads[lanes] < 0).any())
            if len(far) > 1 or (alone and any(place[0] == INSIDE for place in far)):
                raise Aperiodic(
                    f"'{statement.text}', which lanes of a warp execute in different iterations", statement.span
                )


def deciding_registers(statement: ptx.Statement) -> Iterable[ptx.Register]:
    """The registers on which the effect of an instruction depends: values that are only stored do not count."""
    kind, guard = statement.kind, statement.guard
    strong_store = kind is Kind.STORE and statement.opcode.is_strong
    if kind in ADDRESSED and not strong_store:
        return [r for o in statement.operands if isinstance(o, ptx.Address) for r in operand_registers(o)]
    if kind in WARPGROUP:
        return [o for o in statement.operands if isinstance(o, ptx.Register) and o.type != "pred"]
    return [r for r in statement.uses if guard is None or r != guard.register]
