"""What a cluster does with the number that it draws: whether it only compares it, and with what.

The number is followed through moves, additions, shared memory and shuffles, a lane and a byte of shared memory at a
time; more may be taken for it than is. Any other use is noted. The comparisons are kept with their
operands, so that their results are known for every other number that the cluster might have drawn; one with what a
strong load returns is another use, for that may differ, and a thread may wait by it. A number in memory may be
overwritten as a whole, but not in part or by an atomic: what is left need not grow with the number. Behind a weak store
of something else the number is not there any more: a load that may still return it races with the store, which is found
in the pairs that are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span, Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, is_packed, type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.instructions.access_operands import to_generic

Indices = NDArray[np.int64]
Varies = Callable[[Unit, ptx.Operand, Fetch, Indices], bool]
SIGNED = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
ASKS_MORE = "a cluster asks more of the number it drew than whether it is the last"
CHANGES = (Kind.STORE, Kind.ATOMIC, Kind.REDUCTION)
EQUAL = {"eq": np.equal, "ne": np.not_equal}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a value that grows with the number drawn, of ``bits`` bits, with another one."""

    test: str
    signed: bool
    bits: int
    value: int
    other: int

    def results(self, drawn: int, numbers: Indices) -> NDArray[np.bool_]:
        """The results for these numbers, where ``value`` is that of the number ``drawn``."""
        top = 1 << self.bits
        values = np.array([(self.value + int(n) - drawn) % top for n in numbers], object)
        other = self.other % top
        if self.signed and self.test in SIGNED:
            values = np.where(values >= top // 2, values - top, values)
            other -= top if other >= top // 2 else 0
        return np.asarray(({**SIGNED, **UNSIGNED, **EQUAL}[self.test])(values, other), np.bool_)


@dataclass(slots=True)
class CountUses:
    """The watch on one execution. ``misuse`` is the first use that is not followed. ``varies`` says whether an operand
    may differ in other executions, for which this one stands: a number may not be compared with such a one.
    """

    varies: Varies | None = None

    compiler: Compiler = field(init=False)
    comparisons: set[Comparison] = field(default_factory=set)
    misuse: tuple[str, Span | None] | None = None
    counted: NDArray[np.bool_] = field(init=False)
    """By row and lane, whether a register may depend on the number."""
    rows: set[int] = field(default_factory=set)
    """The rows of such registers."""
    bytes_counted: set[int] = field(default_factory=set)
    """The bytes of shared memory that may."""
    bits_stored: int = 0
    """The size of the values in them."""
    is_drawn: bool = False
    certain: bool = False
    """Whether the number that is drawn now is certain."""
    shared_registers: dict[int, frozenset[ptx.Register]] = field(default_factory=dict)
    """By function, registers that may depend on what strong loads return."""
    called: tuple[str, Span | None] | None = None
    """A call: what a function returns is not followed."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument all steps."""
        self.compiler = compiler
        self.counted = np.zeros(compiler.lanes.values.shape, np.bool_)
        out = list(steps)
        for at, statement, unit in statements(compiler):
            out[at] = self._watched(unit, statement, steps[at])
            if statement.kind is Kind.CALL:
                self.called = self.called or (f"'{statement.text}' is not followed", statement.span)
        return out

    def check_only_last(self, count: int, bits: Collection[int]) -> None:
        """Check that all of ``count`` numbers but the last one, of words of so many bits, lead to the same. Raises
        ``NotReducible``.
        """
        if self.misuse is not None:
            raise NotReducible(*self.misuse)
        for one in self.comparisons:
            if {one.bits} != set(bits) or len(set(one.results(0, np.arange(count - 1)).tolist())) > 1:
                raise NotReducible(ASKS_MORE)

    def _watched(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        guard = statement.guard
        sources = frozenset(unit.frame + r.index for r in statement.uses)
        targets = [unit.frame + r.index for r in statement.defs]
        draws = statement.kind is Kind.ATOMIC and self.compiler.is_needed(unit, statement)
        idle = statement.only_computes and not self.compiler.is_needed(unit, statement)
        follow = self._follow(unit, statement)
        loads, shuffles = statement.kind is Kind.LOAD, statement.kind is Kind.SHUFFLE
        changed = statement.kind in CHANGES and statement.opcode.space not in ("param", "global")
        place = self.compiler.fetch(unit, statement.place) if changed else None
        overwrites = statement.kind is Kind.STORE and not statement.opcode.is_strong

        def run(c: Cluster, mask: Mask) -> Mask | None:
            if not (self.is_drawn or draws) or idle:
                return step(c, mask)
            near = not self.rows.isdisjoint(sources)
            told = bool(self.bytes_counted) and (loads or place is not None)
            if not (draws or near or told or not self.rows.isdisjoint(targets)):
                return step(c, mask)
            mine = self.compiler.guarded(unit, guard, mask)
            passed = np.zeros(len(mask), np.bool_)
            if place is not None and told:
                self._check_change(statement, place, np.flatnonzero(mine))
            fed = near and any(self.counted[s][mine].any() for s in sources)
            if fed or (shuffles and near) or (loads and self.bytes_counted):
                passed = follow(np.flatnonzero(mine))
            elif overwrites and told and place is not None:
                self._overwrite(statement, place, np.flatnonzero(mine))
            rest = step(c, mask)
            for target in targets:
                if shuffles:
                    self.counted[target] |= passed
                else:
                    self.counted[target][mine] = (draws and not self.certain) or passed[mine]
                (self.rows.add if self.counted[target].any() else self.rows.discard)(target)
            if draws and mine.any():
                self.is_drawn, self.misuse = True, self.misuse or self.called
            return rest

        return run

    def _follow(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        """What is done before an instruction to which the number may come, in these lanes; returns in which its results
        may depend on it.
        """
        try:
            match statement.kind:
                case Kind.COMPARISON:
                    return self._comparison(unit, statement)
                case Kind.MOVE | Kind.ARITHMETIC if _is_plain(statement):
                    return self._sum(unit, statement)
                case Kind.LOAD:
                    return self._load(unit, statement)
                case Kind.STORE:
                    return self._store(unit, statement)
                case Kind.SHUFFLE:
                    return self._shuffle(unit, statement)
        except (Unsupported, StopIteration, KeyError):
            pass
        return lambda lanes: self._other_use(statement, lanes)

    def _other_use(self, statement: ptx.Statement, lanes: Indices) -> Mask:
        self.misuse = self.misuse or (f"'{statement.text}' uses the number that is drawn", statement.span)
        return self._in(lanes)

    def _in(self, lanes: Indices) -> Mask:
        out = np.zeros(self.compiler.lanes.count, np.bool_)
        out[lanes] = True
        return out

    def _nowhere(self) -> Mask:
        return np.zeros(self.compiler.lanes.count, np.bool_)

    def _is_counted(self, unit: Unit, operand: ptx.Operand, lanes: Indices) -> bool:
        return any(self.counted[unit.frame + r.index][lanes].any() for r in operand_registers(operand))

    def _sum(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        """A move, or an addition of what does not depend on the number: the result grows as the number does."""
        sources = statement.operands[1:]
        fetches: list[Fetch] = [self.compiler.fetch(unit, o) for o in sources]
        shared = self._shared_registers(unit.function)
        differs = [not shared.isdisjoint(operand_registers(o)) for o in sources]

        def before(lanes: Indices) -> Mask:
            counted = [self._is_counted(unit, o, lanes) for o in sources]
            rest = [k for k, one in enumerate(counted) if not one]
            varies = any(differs[k] for k in rest)
            if self.varies is not None:
                varies |= any(self.varies(unit, sources[k], fetches[k], lanes) for k in rest)
            falls = statement.opcode.name == "sub" and not counted[0]
            return self._other_use(statement, lanes) if varies or falls or sum(counted) != 1 else self._in(lanes)

        return before

    def _comparison(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        opcode = statement.opcode
        a, b, *more = statement.operands[1:]
        fetches: list[Fetch] = [self.compiler.fetch(unit, o) for o in (a, b)]
        bits, test, signed = type_bits(opcode.type), opcode.mode, opcode.type[0] == "s"
        known = test in {**SIGNED, **UNSIGNED, **EQUAL} and opcode.type[0] in "bus" and opcode.name == "setp"
        shared = self._shared_registers(unit.function)
        with_shared = [not shared.isdisjoint(operand_registers(o)) for o in (b, a)]
        if opcode.type[0] == "b" and test in SIGNED:
            known = False

        def before(lanes: Indices) -> Mask:
            counted = [self._is_counted(unit, o, lanes) for o in (a, b)]
            varies = any(c and other for c, other in zip(counted, with_shared, strict=True))
            if self.varies is not None:
                varies |= any(self.varies(unit, o, f, lanes) for o, f in zip((a, b), fetches, strict=True))
            if not known or varies or all(counted) or any(self._is_counted(unit, o, lanes) for o in more):
                return self._other_use(statement, lanes)
            shape = self.compiler.lanes.exists.shape
            one, other = (np.broadcast_to(f()[0], shape)[lanes] for f in fetches)
            turned = counted[1]
            pairs = np.unique(np.stack([one, other]), axis=1).T.tolist()
            swapped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "lo": "hi", "hi": "lo", "ls": "hs", "hs": "ls"}
            for x, y in pairs:
                value, against = (int(y), int(x)) if turned else (int(x), int(y))
                said = swapped.get(test, test) if turned else test
                if not signed and said in SIGNED:
                    said = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}[said]
                self.comparisons.add(Comparison(said, signed, bits, value, against))
            return self._nowhere()  # the result is the same for all numbers for which this comparison has one result

        return before

    def _shared_registers(self, function: ptx.Function) -> frozenset[ptx.Register]:
        """The registers that may depend on what strong loads return: that may be something else in other executions,
        where a thread waits for a number to compare with its own.
        """
        found = self.shared_registers.get(id(function))
        if found is None:
            reached = {r for s in function.body if s.kind is Kind.LOAD and s.opcode.is_strong for r in s.defs}
            count = 0
            while count < len(reached):
                count = len(reached)
                reached |= {r for s in function.body if not reached.isdisjoint(s.uses) for r in s.defs}
            found = self.shared_registers[id(function)] = frozenset(reached)
        return found

    # --- by shared memory and between lanes ---------------------------------------------------------------------------

    def _load(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        place = statement.place
        fetch, size = self.compiler.fetch(unit, place), type_size(statement.opcode.type)
        plain = isinstance(statement.operands[0], ptx.Register) and statement.opcode.vector == 1

        def before(lanes: Indices) -> Mask:
            if self._is_counted(unit, place, lanes):
                return self._other_use(statement, lanes)
            at = self._addresses(fetch, lanes)
            reach = size * statement.opcode.vector
            hit = np.array([not self.bytes_counted.isdisjoint(range(a, a + reach)) for a in at.tolist()], np.bool_)
            if not hit.any():
                return self._nowhere()
            if not plain or 8 * size != self.bits_stored:
                return self._other_use(statement, lanes)
            return self._in(lanes[hit])

        return before

    def _store(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        place, source = statement.operands[:2]
        assert isinstance(place, ptx.Address)
        fetch, bits = self.compiler.fetch(unit, place), type_bits(statement.opcode.type)
        plain = isinstance(source, ptx.Register) and statement.opcode.vector == 1

        def before(lanes: Indices) -> Mask:
            at = self._addresses(fetch, lanes)
            shared = ((at >= SHARED_BASE) | (at < GLOBAL_BASE)).all()
            other = self.bits_stored not in (0, bits) or bits not in (32, 64)
            if self._is_counted(unit, place, lanes) or not plain or not shared or other:
                return self._other_use(statement, lanes)
            self.bits_stored = bits
            for a in at.tolist():
                self.bytes_counted.update(range(a, a + bits // 8))
            return self._nowhere()

        return before

    def _check_change(self, statement: ptx.Statement, place: Fetch, lanes: Indices) -> None:
        """Check that a write leaves no part of a number in shared memory, and computes none from it: such a value does
        not grow with the number.
        """
        size = type_size(statement.opcode.type)
        if statement.kind is Kind.STORE and 8 * size % self.bits_stored == 0:
            return  # whole values
        reach = size * statement.opcode.vector
        if any(not self.bytes_counted.isdisjoint(range(a, a + reach)) for a in self._addresses(place, lanes).tolist()):
            self._other_use(statement, lanes)

    def _overwrite(self, statement: ptx.Statement, place: Fetch, lanes: Indices) -> None:
        """Forget the numbers that these lanes overwrite."""
        reach = type_size(statement.opcode.type) * statement.opcode.vector
        for at in self._addresses(place, lanes).tolist():
            self.bytes_counted.difference_update(range(at, at + reach))

    def _addresses(self, fetch: Fetch, lanes: Indices) -> Word:
        return to_generic(np.broadcast_to(fetch()[0], self.compiler.lanes.exists.shape)[lanes])

    def _shuffle(self, unit: Unit, statement: ptx.Statement) -> Callable[[Indices], Mask]:
        """The lanes of a warp may come one after the other: all of them get the number."""
        source, *others = statement.operands[1:]
        plain = isinstance(source, ptx.Register) and isinstance(statement.operands[0], ptx.Register)

        def before(lanes: Indices) -> Mask:
            if any(self._is_counted(unit, o, lanes) for o in others):
                return self._other_use(statement, lanes)
            brings = [unit.frame + r.index for r in operand_registers(source)]
            warps = distinct(np.flatnonzero(np.logical_or.reduce(self.counted[brings])) // WARP)
            if len(warps) and not plain:
                return self._other_use(statement, lanes)
            return np.isin(np.arange(self.compiler.lanes.count) // WARP, warps)

        return before


def _is_plain(statement: ptx.Statement) -> bool:
    """Whether an instruction is a move, or an addition of two whole numbers."""
    opcode, operands = statement.opcode, statement.operands
    if not all(isinstance(o, ptx.Register | ptx.Immediate) for o in operands) or len(opcode.parts) != 2:
        return False
    count = {"mov": 2, "add": 3, "sub": 3}.get(opcode.name)
    return len(operands) == count and opcode.type[0] in "bus" and not is_packed(opcode.type)
