"""Execution of a cluster while watching what depends on its coordinates: registers, control, shared addresses.

Every lane acts by itself, or with others of its cluster. So a cluster does what this one does, at other places in
global memory, if every guard, every operand of an observable operation and every address of shared memory is the same;
where such a thing depends on the coordinates, the class of this cluster gets a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit, possible_callees
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import Word, lane_function
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import operand_registers
from mcheck.isa.kinds import COLLECTIVES, GRID_DEPENDENCIES, PREFETCHES, Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.execution.value_numbering import WARP_WIDE, mix_numbers
from mcheck.simt.grid.footprints.affine_forms import ALWAYS, NEVER, Conditions, comparison_condition, coordinate_rule
from mcheck.simt.grid.footprints.class_names import result_names
from mcheck.simt.grid.footprints.coordinate_taint import COORDINATES, special_registers, tainted_rows
from mcheck.simt.grid.footprints.recorded_accesses import AccessRecorder
from mcheck.simt.grid.footprints.signalling import may_order
from mcheck.simt.grid.footprints.space import MAX_SYMBOLS, Space
from mcheck.simt.grid.footprints.state import Indices
from mcheck.simt.instructions.barriers import SHUFFLES, shuffle_sources
from mcheck.simt.parametric.affine import Value, select_rule

BeforeStep = Callable[[Cluster, Indices], None]
"""What is done before an instruction, for the lanes that execute it."""

Forms = list[dict[int, NDArray[Any]]]
"""By kind of form and register, that of some lanes."""
IDLE = (PREFETCHES - {Kind.BULK_PREFETCH}) | GRID_DEPENDENCIES | {
    Kind.SLEEP, Kind.REGISTER_COUNT, Kind.EVENT, Kind.BREAKPOINT, Kind.CACHE_PRIORITY,
}  # fmt: skip
"""Instructions without effect on memory or control, whatever their operands."""


def cluster_space(launch: Launch) -> Space:
    """The coordinates of the clusters of a launch; of boxes of clusters where several are executed together, whose
    extents divide those of the grid.
    """
    counts = [n // d for n, d in zip(launch.cluster_counts, launch.together, strict=True)]
    first = [at // d for at, d in zip(launch.executed_clusters[0], launch.together, strict=True)]
    return Space(
        tuple(-f for f in first), tuple(n - 1 - f for f, n in zip(first, counts, strict=True)), tuple(first)
    )  # fmt: skip


def grid_watch(launch: Launch) -> GridWatch | None:
    """The watch on a cluster of a launch; ``None`` if the grid has no other one."""
    if launch.group is not None:
        return None
    space = cluster_space(launch)
    return GridWatch(space) if space.cluster_count > 1 else None


@dataclass(slots=True)
class GridWatch(AccessRecorder):
    """The watch on one execution."""

    repeats_rounds: ClassVar[bool] = True
    """Whether the footprint may get the accesses of rounds of a loop that are not executed."""
    tainted: frozenset[int] = field(default_factory=frozenset)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps that involve coordinates or global memory."""
        self.begin(compiler)
        self.tainted = tainted_rows(compiler.module, compiler.code, self.varying(compiler))
        out = list(steps)
        self.footprint.may_signal = may_order(compiler)
        for at, statement, unit in statements(compiler):
            before = None if find_fault(statement) is not None else self._before(unit, statement, at)
            guard = self._guard(unit, statement)
            if before is not None or guard is not None:
                out[at] = self._watched(unit, statement, before, guard, steps[at])
        return out

    def varying(self, compiler: Compiler) -> frozenset[int]:
        """The rows of registers that vary as coordinates do."""
        del compiler
        return frozenset()

    def _guard(self, unit: Unit, statement: ptx.Statement) -> int | None:
        """The row of a guard that may depend on the coordinates."""
        guard = statement.guard
        row = None if guard is None else unit.frame + guard.register.index
        return row if row in self.tainted and row in self.compiler.code.needed_rows else None

    def _watched(
        self, unit: Unit, statement: ptx.Statement, before: BeforeStep | None, guarded: int | None, step: Step
    ) -> Step:
        guard, span = statement.guard, statement.span
        weak, numbers = self.may_be_omitted(statement), self.coordinates
        computing = statement.only_computes
        targets = self._needed_rows(unit, statement.defs)

        def run(c: Cluster, mask: Mask) -> Mask | None:
            numbers.span = span
            mine, when = self.compiler.guarded(unit, guard, mask), None
            if guarded is not None and self.may_differ((guarded,)):
                when = self.watch_guard(c, statement, guarded, mask, mine, weak=weak)
            if before is not None and mine.any():
                lanes = np.flatnonzero(mine)
                self.optional = None if when is None else when[lanes]
                before(c, lanes)
                if when is not None and not computing:  # the result of a load that may be omitted is unknown
                    self.set_unknown(targets, lanes[when[lanes] != ALWAYS])
            if computing and when is not None:
                self._conditional(targets, np.flatnonzero(mask), when[mask])
            return step(c, mask)

        return run

    def watch_guard(
        self, c: Cluster, statement: ptx.Statement, row: int, mask: Mask, mine: Mask, *, weak: bool
    ) -> Conditions | None:
        """Handle a guard that depends on the coordinates: it must be the same, except that a weak access of memory may
        be omitted in other clusters, and that results of computations are recorded to depend on it.
        """
        del c
        when = np.zeros(len(mask), np.int32)
        lanes = np.flatnonzero(mask)
        when[lanes] = self.conditions(row, lanes)
        if statement.only_computes:
            return when
        some = lanes if not weak else np.flatnonzero(mask & ~mine)
        if not self.table.require(when[some], statement.span):
            self.space.isolate(f"whether '{statement.text}' is executed depends on %ctaid", statement.span)
        return when if weak else None

    def _conditional(self, rows: list[int], lanes: Indices, when: Conditions) -> None:
        """Record that the values of these registers depend on a guard."""
        for row in rows:
            bad = when == NEVER
            if bad.any():
                self.set_unknown([row], lanes[bad])
            known = self.when[row][lanes] if row in self.when else np.zeros(len(lanes), np.int32)
            both = self.table.both(known, np.where(bad, ALWAYS, when).astype(np.int32))
            if both.any():
                self.when.setdefault(row, np.zeros(self.compiler.lanes.count, np.int32))[lanes] = both

    def _before(self, unit: Unit, statement: ptx.Statement, at: int) -> BeforeStep | None:
        kind = statement.kind
        used = {unit.frame + r.index for r in (*statement.uses, *statement.defs)}
        told = not COORDINATES.isdisjoint(special_registers(statement))
        concerned = told or not used.isdisjoint(self.tainted)
        if kind in IDLE:
            return None
        if statement.only_computes:
            return self._computation(unit, statement) if concerned else None
        try:
            touching = self.watch_access(unit, statement)
        except (InputError, Unsupported, StopIteration, KeyError, ValueError):
            if at not in self.compiler.not_followed:
                raise
            touching = None
        if touching is not None:
            return touching
        if not concerned:
            return None
        if kind is Kind.CALL:
            return self._call(unit, statement)
        if kind in COLLECTIVES:
            return self._collective(unit, statement)
        fixed = self.require_fixed(unit, statement, statement.uses)
        return self.watch_contents(unit, statement, fixed) if kind is Kind.MATRIX_LOAD else fixed

    def varies(self, unit: Unit, operand: ptx.Operand, fetch: Fetch, lanes: Indices) -> bool:
        """Whether an operand of some lanes may be another one in other clusters."""
        value, when = self.value(unit, operand, fetch, lanes)
        return not value.invariant.all() or bool((when != ALWAYS).any())

    # --- rounds of loops --------------------------------------------------------------------------------------------

    def is_even(self, unit: Unit, statement: ptx.Statement, even: frozenset[str], mask: Mask) -> bool:
        """Whether all that the next execution of an instruction requires of the coordinates is affine in its operands:
        it is one of those computations, or an access that no cluster omits, at an address that is followed.
        """
        guard = None if statement.guard is None else unit.frame + statement.guard.register.index
        if guard is not None and statement.kind is not Kind.BRANCH and self.may_differ((guard,)):
            return False
        rows = [row for row in (unit.frame + r.index for r in statement.uses) if row != guard]
        if any(row in self.when and self.when[row][mask].any() for row in rows):
            return False
        if not statement.only_computes:
            return not any(row in self.bad and self.bad[row][mask].any() for row in rows)
        if not self.may_differ(rows) and COORDINATES.isdisjoint(special_registers(statement)):
            return True
        return statement.opcode.name in even and statement.opcode.mode != "hi"

    def forms_of(self, lanes: Indices) -> Forms:
        """The forms of all registers that have one, in these lanes."""
        return [
            {row: part[..., lanes].copy() for row, part in table.items()}
            for table in (self.slopes, self.bad, self.when)
        ]

    def keeps_forms(self, before: Forms, rows: Iterable[int], lanes: Indices) -> bool:
        """Whether these registers have the forms that they had ``before``."""
        for row in rows:
            tables: list[dict[int, Any]] = [self.slopes, self.bad, self.when]
            for old, table in zip(before, tables, strict=True):
                was, now = old.get(row), table[row][..., lanes] if row in table else None
                if was is None or now is None:
                    if (was is not None and was.any()) or (now is not None and now.any()):
                        return False
                elif (was != now).any():
                    return False
            if self.named is not None and row in self.bad and self.bad[row][lanes].any():
                return False  # its class name is another one in each round
        return True

    # --- computations ---------------------------------------------------------------------------------------------

    def _computation(self, unit: Unit, statement: ptx.Statement) -> BeforeStep | None:
        kind = statement.kind
        targets = self._needed_rows(unit, statement.defs)
        if not targets or not self.compiler.is_needed(unit, statement):
            return None
        operands = [x for o in statement.operands[1:] for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        rows = [unit.frame + r.index for o in operands for r in operand_registers(o)]
        told = not COORDINATES.isdisjoint(special_registers(statement))
        packs = any(isinstance(o, ptx.Vector) for o in statement.operands)
        moves = kind in (Kind.MOVE, Kind.ADDRESS_CONVERSION)
        followed = moves or lane_function(statement.opcode) is not None
        if not followed and (self.named is None or kind in WARP_WIDE):

            def lost(_: Cluster, lanes: Indices) -> None:
                (self.set_unknown if told or self.may_differ(rows) else self.set_same)(targets, lanes)

            return lost
        try:
            fetches: list[tuple[ptx.Operand, Fetch]] = [(o, self.compiler.fetch(unit, o)) for o in operands]
        except Unsupported:
            return lambda _, lanes: self.set_unknown(targets, lanes)
        several = len(statement.defs) > 1 and kind is not Kind.COMPARISON
        rule = self._rule(statement) if followed and not packs and not several else None

        def before(_: Cluster, lanes: Indices) -> None:
            if not told and not self.may_differ(rows):
                self.set_same(targets, lanes)
                return
            given = [self.value(unit, o, f, lanes) for o, f in fetches]
            value, when = self._default_form(given) if rule is None else rule(given)
            name = self._name_result(unit, statement, operands, given, lanes) if value.bad.any() else None
            for k, row in enumerate(targets):
                own = None if name is None else mix_numbers(k, [name])
                self.set_form(row, lanes, value, when, own)

        return before

    def _name_result(
        self, unit: Unit, statement: ptx.Statement, operands: list[ptx.Operand],
        given: list[tuple[Value, Conditions]], lanes: Indices,
    ) -> Word | None:  # fmt: skip
        """The class names of a result, where stored values have names."""
        if self.named is None:
            return None
        words = []
        for operand, (value, _) in zip(operands, given, strict=True):
            rows = [unit.frame + r.index for r in operand_registers(operand)]
            if isinstance(operand, ptx.Part) and self.may_differ(rows):
                return None
            words.append((value.base, self.class_name(value, rows[0] if rows else None, lanes)))
        return result_names(statement, words)

    def _default_form(self, given: list[tuple[Value, Conditions]]) -> tuple[Value, Conditions]:
        """The result of an instruction without a rule: the same where its operands are."""
        like = given[0][0]
        bad = ~np.logical_and.reduce([v.invariant for v, _ in given])
        return Value(like.base, np.zeros_like(like.slopes), bad), self._conjunction([w for _, w in given])

    def _conjunction(self, given: list[Conditions]) -> Conditions:
        out = given[0]
        for more in given[1:]:
            out = self.table.both(out, more)
        return out

    def _rule(
        self, statement: ptx.Statement
    ) -> Callable[[list[tuple[Value, Conditions]]], tuple[Value, Conditions]] | None:
        kind, opcode = statement.kind, statement.opcode
        if kind is Kind.COMPARISON:
            return self._setp(opcode.mode, opcode.type)
        if kind is Kind.SELECTION:
            return self._selp
        if opcode.type == "pred":
            return {"and": self._junction(decisive=False), "or": self._junction(decisive=True)}.get(
                opcode.name, self._default_form
            )
        if opcode.space == "shared":
            return self._default_form
        rule = coordinate_rule(opcode)
        if rule is None:
            return self._default_form

        def run(given: list[tuple[Value, Conditions]]) -> tuple[Value, Conditions]:
            values = [v for v, _ in given]
            value = rule(self.coordinates, values)
            still = np.logical_and.reduce([v.invariant for v in values])
            slopes = np.where(still | value.bad, 0, value.slopes)
            return Value(value.base, slopes, value.bad & ~still), self._conjunction([w for _, w in given])

        return run

    def _setp(
        self, test: str, kind: str
    ) -> Callable[[list[tuple[Value, Conditions]]], tuple[Value, Conditions]] | None:
        if kind[0] not in "bus" or test not in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"):
            return None

        def run(given: list[tuple[Value, Conditions]]) -> tuple[Value, Conditions]:
            (a, _), (b, _), *more = given
            when = comparison_condition(self.table, self.coordinates, test, kind, a, b)
            when = self._conjunction([when, *(w for _, w in given)])
            bad = (when == NEVER) | np.logical_or.reduce([np.zeros(len(when), np.bool_), *(v.bad for v, _ in more)])
            return Value(a.base, np.zeros_like(a.slopes), bad), np.where(bad, ALWAYS, when).astype(np.int32)

        return run

    def _selp(self, given: list[tuple[Value, Conditions]]) -> tuple[Value, Conditions]:
        (a, first), (b, second), (p, by) = given
        value = select_rule(a, b, p)
        alike = a.invariant & b.invariant & (a.base == b.base)
        when = np.where(p.base != 0, first, second).astype(np.int32)
        when = self.table.both(when, np.where(alike, ALWAYS, by).astype(np.int32))
        return Value(value.base, value.slopes, value.bad & ~alike), when

    def _junction(self, *, decisive: bool) -> Callable[[list[tuple[Value, Conditions]]], tuple[Value, Conditions]]:
        """``and`` and ``or`` of predicates: one that decides the result is enough."""

        def run(given: list[tuple[Value, Conditions]]) -> tuple[Value, Conditions]:
            (a, first), (b, second) = given
            both = self.table.both(first, second)
            when, bad = both, a.bad | b.bad
            for value, alone in ((a, first), (b, second)):
                decides = ~value.bad & ((value.base & np.uint64(1)) == np.uint64(decisive))
                when = np.where(decides & (bad | (when != ALWAYS)), alone, when).astype(np.int32)
                bad = bad & ~decides
            return Value(a.base, np.zeros_like(a.slopes), bad), when

        return run

    # --- exchanges between lanes -------------------------------------------------------------------------------------

    def _collective(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        """An exchange between lanes: the operand of a lane matters to others of its warp; a value that is uniform in
        the warp is unchanged.
        """
        brings = [unit.frame + r.index for r in statement.uses]
        targets = self._needed_rows(unit, statement.defs)
        source = statement.operands[1] if statement.kind is Kind.SHUFFLE else None
        row = unit.frame + source.index if isinstance(source, ptx.Register) else None
        others = [r for r in brings if r != row]

        def before(c: Cluster, lanes: Indices) -> None:
            if not self.may_differ(brings):
                self.set_same(targets, lanes)
                return
            if row is not None and not self.may_differ(others) and self._uniform(c, row, lanes):
                value = Value(c.lanes.values[row][lanes], self._slopes(row, lanes), np.zeros(len(lanes), np.bool_))
                for target in targets:
                    self.set_form(target, lanes, value)
                return
            whole = len(targets) == 1 and _are_whole_warps(lanes)
            if whole and row is not None and not self.may_differ(others) and row not in self.bad:
                self._move_forms(c, unit, statement, row, targets[0], lanes)
                return
            if whole and self.named is not None and row is not None and not self.may_differ(others):
                self._name_shuffled(c, unit, statement, row, targets[0], lanes)
                return
            if row is None:  # votes on predicates
                reason = f"an operand of '{statement.text}' depends on %ctaid"
                self.require_same(brings, lanes, reason, statement.span)
                self.set_same(targets, lanes)
                return
            self.set_unknown(targets, lanes)

        return before

    def _move_forms(
        self, c: Cluster, unit: Unit, statement: ptx.Statement, row: int, target: int, lanes: Indices
    ) -> None:
        """Lanes of whole warps get the forms of the lanes whose values they get."""
        source = self._sources(unit, statement, lanes)[lanes]
        slopes = self.slopes[row] if row in self.slopes else np.zeros((MAX_SYMBOLS, len(c.lanes.exists)), np.int64)
        form = Value(c.lanes.values[row][source], slopes[:, source], np.zeros(len(lanes), np.bool_))
        self.set_form(target, lanes, form, self.when[row][source] if row in self.when else None)

    def _sources(self, unit: Unit, statement: ptx.Statement, lanes: Indices) -> Indices:
        """By lane, the one whose value it gets by a ``shfl`` of these lanes."""
        mask = np.zeros(self.compiler.lanes.count, np.bool_)
        mask[lanes] = True
        given = [np.broadcast_to(self.compiler.fetch(unit, o)()[0], mask.shape) for o in statement.operands[2:4]]
        return shuffle_sources(statement.opcode.choice(SHUFFLES) or "idx", mask, *given)[0]

    def _name_shuffled(
        self, c: Cluster, unit: Unit, statement: ptx.Statement, row: int, target: int, lanes: Indices
    ) -> None:
        """Lanes of whole warps get the class names of the lanes whose values they get."""
        mask = np.zeros(self.compiler.lanes.count, np.bool_)
        mask[lanes] = True
        self.require_values(row, lanes, f"an operand of '{statement.text}' depends on %ctaid", statement.span)
        form = Value(c.lanes.values[row][lanes], self._slopes(row, lanes), self.bad.get(row, ~mask)[lanes])
        names = np.zeros(len(mask), np.uint64)
        names[lanes] = self.class_name(form, row, lanes)
        name = names[self._sources(unit, statement, lanes)[lanes]]
        unknown = Value(form.base, np.zeros_like(form.slopes), name != 0)
        self.set_form(target, lanes, unknown, None, name)

    def _slopes(self, row: int, lanes: Indices) -> np.ndarray:
        if row in self.slopes:
            return self.slopes[row][:, lanes]
        return np.zeros((MAX_SYMBOLS, len(lanes)), np.int64)

    def _uniform(self, c: Cluster, row: int, lanes: Indices) -> bool:
        """Whether a register is uniform in each warp, in every cluster, and all lanes of the warps are present."""
        if row in self.bad or row in self.when or not _are_whole_warps(lanes):
            return False
        table = np.vstack([c.lanes.values[row][lanes].astype(np.int64), self._slopes(row, lanes)])
        firsts = np.searchsorted(lanes // WARP, lanes // WARP)
        return bool((table == table[:, firsts]).all())

    def _call(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        """Forms are not followed into a function, nor back out of it."""
        given = [unit.frame + r.index for r in statement.uses]
        callees = [u for _, u, _ in possible_callees(self.compiler.module, self.compiler.code.units, statement)]
        formals = [
            u.frame + r.index for u in callees for r in u.function.registers
            if r.name in {p.name for p in u.function.parameters}
        ]  # fmt: skip
        results = self._needed_rows(unit, statement.defs)
        inside = any(u.frame <= row < u.frame + len(u.function.registers) for u in callees for row in self.tainted)
        told = not COORDINATES.isdisjoint(special_registers(statement))

        def before(_: Cluster, lanes: Indices) -> None:
            dependent = told or self.may_differ(given)
            if dependent:
                self.tainted_memory.add("own")
            (self.set_unknown if dependent else self.set_same)(formals, lanes)
            (self.set_unknown if dependent or inside else self.set_same)(results, lanes)

        return before


def _are_whole_warps(lanes: Indices) -> bool:
    """Whether these are all lanes of some warps."""
    if len(lanes) % WARP or (lanes[::WARP] % WARP).any():
        return False
    return bool((lanes[WARP - 1 :: WARP] - lanes[::WARP] == WARP - 1).all())
