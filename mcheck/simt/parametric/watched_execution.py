"""Execution of a cluster with one value of an unbounded parameter, while watching what other values would change
(``mcheck.simt.parametric.affine``).

Every lane acts by itself: it learns from others only what lanes of its warp exchange where all of them converge, and
that must be the same for all numbers. So if no guard, no address and no operand changes with the number, the lane does
the same with all of them; and if they also stay the same while growing registers advance by a period of its loop, so
does every further period.

A lane is before the mark in its loop, inside the period after it, or later. Before and inside, the number may be larger
by periods that are still to come (w); afterwards there are none left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import lane_function, type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.isa.kinds import (
    ADDRESS_FUNCTIONS,
    CANCELS,
    COPIES,
    FRAGMENTS,
    GRID_DEPENDENCIES,
    MAP_EDITS,
    MULTIMEM,
    TMEM,
    Kind,
)
from mcheck.simt.execution.cluster import EXITED, Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import BeforeStep, jump_target, statements, with_action
from mcheck.simt.parametric.affine import Value, logical_rule, rule_of, select_rule
from mcheck.simt.parametric.growing_addresses import GrowingAddresses
from mcheck.simt.parametric.invariant_registers import AFTER, INSIDE, deciding_registers
from mcheck.simt.parametric.loaded_values import Parts

UNSUPPORTED = TMEM | MAP_EDITS | CANCELS | FRAGMENTS | MULTIMEM | {Kind.CALL, Kind.STACK}
"""Instructions whose effects on later ones are not analysed."""
IGNORED = GRID_DEPENDENCIES | {
    Kind.SLEEP, Kind.REGISTER_COUNT, Kind.EVENT, Kind.BREAKPOINT, Kind.CACHE_PRIORITY, Kind.DISCARD,
}  # fmt: skip


@dataclass(slots=True)
class ParameterWatch(GrowingAddresses):
    """The watch for what other numbers would change. ``steps`` are, by lane, the increments of its registers in a
    period, and the registers whose increments vary.
    """

    steps: Mapping[int, tuple[NDArray[np.int64], Mask]] = field(default_factory=dict)
    trace_lengths: dict[int, list[int]] = field(default_factory=dict)
    """By lane, the length of its trace at its mark and at the end of the period."""
    load_counts: dict[int, list[int]] = field(default_factory=dict)
    """By lane, how many values it has loaded there."""
    irregular_registers: dict[int, set[int]] = field(default_factory=dict)
    """By lane, registers that have not advanced by their steps at the end of the period."""
    widths: NDArray[np.int64] = field(init=False)
    entered: dict[int, tuple[object, ...]] = field(default_factory=dict)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps."""
        self.begin(compiler)
        self.widths = np.array(
            [min(type_bits(r.type) or 64, 64) for u in compiler.code.units for r in u.function.registers], np.int64
        )
        out = list(steps)
        for at, statement, unit in statements(compiler):
            out[at] = with_action(
                compiler, unit, statement, self._before(unit, statement, at), steps[at], self._require_invariant
            )
        return out

    def _before(self, unit: Unit, statement: ptx.Statement, at: int) -> BeforeStep | None:
        """The check before an instruction is executed."""
        kind = statement.kind
        if find_fault(statement) is not None:  # its step says so
            return None
        if statement.only_computes:
            return self._computation(unit, statement)
        if kind is Kind.BRANCH:
            return self._jump(jump_target(unit, statement), at)
        if kind in IGNORED:
            return None
        if kind in UNSUPPORTED:
            return _refusing(statement)
        if kind is Kind.LOAD:
            return self._load(unit, statement)
        if kind in COPIES:
            return self._copy(unit, statement)
        if kind in (Kind.STORE, Kind.ATOMIC, Kind.REDUCTION):
            return self._store(unit, statement)
        return self._require_operands(unit, statement, deciding_registers(statement))

    def loads(self) -> Parts | None:
        """The values of shared memory on which the result rests; ``None`` if there are none."""
        if not self.shared.used.any():
            return None
        parts = {}
        for lane, values in self.loaded.items():
            first, last = self.load_counts.get(lane, (len(values),) * 2)
            parts[lane] = values[:first], values[first:last], values[first:]
        return parts

    # --- loops ----------------------------------------------------------------------------------------------------

    def _jump(self, target: int, at: int) -> BeforeStep | None:
        if target > at:
            return None

        def before(c: Cluster, mine: Mask) -> None:
            here = np.flatnonzero(mine & (self.heads == target))
            self.count[here] += 1
            for lane in here.tolist():
                mark = self.marks[lane]
                if self.count[lane] == mark.first:
                    self._enter(c, lane)
                elif self.count[lane] == mark.first + mark.visits:
                    self._leave(c, lane)

        return before

    def _enter(self, c: Cluster, lane: int) -> None:
        step, unsteady = self.steps[lane]
        slopes = self.slopes[:, :, lane]
        slopes[0] = _reduced(slopes[1] + step, self.widths)
        self.bad[unsteady, lane] = True
        self.part[lane] = INSIDE
        self.trace_lengths[lane] = [len(c.recorded.code[lane])]
        self.load_counts[lane] = [len(self.loaded.get(lane, ()))]
        self.entered[lane] = (
            slopes.copy(), self.bad[:, lane].copy(), c.lanes.values[:, lane].copy(),
            c.assumed_failures.by_lane.get(lane), list(c.return_stacks[lane]),
        )  # fmt: skip

    def _leave(self, c: Cluster, lane: int) -> None:
        slopes, bad, values, peeks, returns = self.entered.pop(lane)
        step, _ = self.steps[lane]
        now = self.slopes[:, :, lane]
        gone = (c.lanes.values[:, lane] - values).astype(np.int64)  # type: ignore[operator]
        same = (_reduced(now, self.widths) == _reduced(slopes, self.widths)).all(axis=0)  # type: ignore[arg-type]
        unlike = ~bad & (self.bad[:, lane] | ~same | (gone != step))  # type: ignore[operator]
        if unlike.any():
            self.irregular_registers.setdefault(lane, set()).update(np.flatnonzero(unlike).tolist())
        if peeks != c.assumed_failures.by_lane.get(lane) or returns != c.return_stacks[lane]:
            raise Aperiodic("a poll in one iteration on which the next one depends", c.span)
        now[1] = 0
        self.part[lane] = AFTER
        self.trace_lengths[lane].append(len(c.recorded.code[lane]))
        self.load_counts[lane].append(len(self.loaded.get(lane, ())))

    def check_result(self, c: Cluster) -> None:
        """Check the result of the execution; raises ``Aperiodic``."""
        for gap in c.recorded.gaps.values():
            raise Aperiodic(gap.reason, gap.span)
        for span in c.chosen_spans.values():
            raise Aperiodic("control depends on data", span)
        if c.recorded.has_conflicting_stores:
            raise Aperiodic("stores of several lanes to one place")
        if (c.status != EXITED).any():
            raise Aperiodic("a wait that blocks forever")
        if self.others_fill and self.shared.used.any():
            raise Aperiodic("values in shared memory, which copies may write as well")
        if (self.shared.used & self.shared.moves).any():
            raise Aperiodic("values in shared memory where others are stored that grow, or are not known")
        if any(self.part[lane] != AFTER for lane in self.marks):
            raise Aperiodic("a loop that does not continue")

    def _computation(self, unit: Unit, statement: ptx.Statement) -> BeforeStep | None:
        kind, opcode = statement.kind, statement.opcode
        targets = [row for _, row in self._wanted(unit, statement.defs)]
        if not targets:
            return None
        operands = statement.operands[1:]
        packs = any(isinstance(o, ptx.Vector) for o in statement.operands)
        follows = kind is Kind.MOVE or kind in ADDRESS_FUNCTIONS or lane_function(opcode) is not None
        if not follows or (
            packs and isinstance(operands[0], ptx.Vector) and isinstance(statement.operands[0], ptx.Vector)
        ):
            return lambda _, mine: self._set(targets, np.flatnonzero(mine), statement, 0, bad=True)
        items = [x for o in operands for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        fetches = [(o, self.compiler.fetch(unit, o)) for o in items]
        converts = kind is Kind.ADDRESS_CONVERSION and opcode.space == "shared"
        rule = None if packs or converts else rule_of(opcode)
        predicates = opcode.name in ("and", "or") and opcode.type == "pred"
        if len(statement.defs) > 1 and kind is not Kind.COMPARISON:
            rule = None

        def before(_: Cluster, mine: Mask) -> None:
            lanes = np.flatnonzero(mine)
            given = [self._value(unit, o, f, lanes) for o, f in fetches]
            still = np.logical_and.reduce([np.ones(len(lanes), np.bool_), *(v.invariant for v in given)])
            if still.all():
                self._set(targets, lanes, statement, 0, bad=False)
                return
            slopes, bad = np.zeros((3, len(lanes)), np.int64), ~still
            if predicates or kind is Kind.SELECTION:
                mixed = logical_rule(opcode.name, *given) if predicates else select_rule(*given)
                slopes, bad = mixed.slopes, mixed.bad & ~still
            elif rule is not None:
                some = np.flatnonzero(~still & ~np.logical_or.reduce([v.bad for v in given]))
                if len(some):
                    parts = [Value(v.base[some], v.slopes[:, some], v.bad[some]) for v in given]
                    made = rule(self.numbers, parts)
                    slopes[:, some], bad[some] = made.slopes, made.bad
            self._set(targets, lanes, statement, slopes, bad | self._is_mixed(unit, items, given))

        return before

    def _is_mixed(self, unit: Unit, operands: list[ptx.Operand], given: list[Value]) -> Mask:
        """The lanes in which one operand stands for others, and another one is not the same for all numbers: the result
        may be the same with these values alone, as with a factor of 0.
        """
        stands = [any(unit.frame + r.index in self.stand_ins for r in operand_registers(o)) for o in operands]
        mixed = np.zeros(len(given[0].bad), np.bool_)
        for k, value in enumerate(given):
            if any(stands[:k] + stands[k + 1 :]):
                mixed |= ~value.invariant
        return mixed


def _refusing(statement: ptx.Statement) -> BeforeStep:
    def before(_: Cluster, __: Mask) -> None:
        raise Aperiodic(
            f"'{statement.text}', which is not followed over an unbounded number of iterations", statement.span
        )

    return before


def _reduced(slopes: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slopes modulo the widths of their registers."""
    small = widths < 64
    bits = np.where(small, widths, 1)
    half, whole = np.int64(1) << bits - 1, np.int64(1) << bits
    return np.where(small, (slopes + half) % whole - half, slopes)
