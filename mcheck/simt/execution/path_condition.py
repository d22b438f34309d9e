"""The path condition: what has been chosen of unknown data. A predicate is chosen where it first matters; from there on
everything that depends on the same data agrees with it, in the same lane and as long as its registers are not
overwritten.

A compiler tests one condition more than once, and its negation: ``x > 0`` for a ballot, ``x < 1`` for the branch after
it. If each were chosen by itself, lanes would take paths that no data leads to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Code
from mcheck.frontend.ptx.module import Register, Statement
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import Lanes, Mask
from mcheck.simt.execution.path_literals import FAR, Bound, Literal, Mixed, extract_literal, literal_registers

NONE, NO, YES = -1, 0, 1
Truth = NDArray[np.int8]
KNOWN = np.uint8(0xFF & ~taint.UNKNOWN_NAMELESS)
END = FAR + 1


@dataclass(slots=True)
class PathCondition:
    """``rows`` are the registers that a literal is about or defines, ``literals`` the literals by place in the code."""

    lanes: Lanes
    rows: frozenset[int] = frozenset()
    literals: dict[int, tuple[Literal, int, int]] = field(default_factory=dict)
    """By place in the code: the literal, the row of the predicate that it defines, the first row of the function."""
    dependents: dict[int, list[int]] = field(default_factory=dict)
    """By row, the predicates computed from it."""
    origin: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    """By row of a predicate and by lane, the place of its definition, as long as no operand of it is overwritten."""
    ranges: dict[tuple[int, str], tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)
    """By row and type, the lower and the upper bound of the number, in each lane."""
    comparisons: dict[tuple[object, ...], Truth] = field(default_factory=dict)
    """Other comparisons that have been chosen, by their operands."""
    chosen_in: dict[int, Mask] = field(default_factory=dict)
    """By row of a predicate, the lanes in which its value was chosen."""
    keys: dict[int, set[tuple[object, ...]]] = field(default_factory=dict)
    """By row, the keys of ``ranges`` and ``comparisons`` that are about it."""

    def prepare(self, code: Code) -> None:
        """Collect the literals of the code."""
        for unit in code.units:
            for k, statement in enumerate(unit.function.body):
                target = statement.operands[0] if statement.operands else None
                if not isinstance(target, Register) or target.type != "pred" or statement.guard is not None:
                    continue
                literal = extract_literal(statement)
                if literal is None or target in statement.uses or unit.frame + target.index not in code.needed_rows:
                    continue
                row = unit.frame + target.index
                self.literals[unit.start + k] = literal, row, unit.frame
                for register in literal_registers(literal):
                    self.dependents.setdefault(unit.frame + register.index, []).append(row)
        self.rows = frozenset(self.dependents) | {row for _, row, _ in self.literals.values()}

    def invalidated_rows(self, frame: int, statement: Statement) -> list[int]:
        """The rows that a statement writes and that literals are about or define."""
        return [row for r in statement.defs if (row := frame + r.index) in self.rows]

    def forget(self, rows: Iterable[int], mask: Mask, *, made: bool) -> None:
        """Drop what is known of registers that are overwritten; with ``made``, their definition as well."""
        for row in rows:
            for key in self.keys.get(row, ()):
                if key in self.comparisons:
                    self.comparisons[key][mask] = NONE
                else:
                    low, high = self.ranges[key]  # type: ignore[index]
                    low[mask], high[mask] = -END, END
            for other in (*self.dependents.get(row, ()), *((row,) if made else ())):
                if other in self.origin:
                    self.origin[other][mask] = NONE
            if made and row in self.chosen_in:
                self.chosen_in[row][mask] = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been chosen."""
        return not self.origin and not self.keys and not self.chosen_in

    # --- what is known ---------------------------------------------------------------------------------------------

    def record_definition(self, at: int, mask: Mask) -> None:
        """Record that the predicate defined at a place is unknown in these lanes, unless earlier choices imply it."""
        row = self.literals[at][1]
        made = self.origin.setdefault(row, np.full(self.lanes.count, NONE, np.int32))
        made[mask] = at
        self.unknown_lanes(row, mask)

    def unknown_lanes(self, row: int, mask: Mask) -> Mask:
        """The lanes in which a predicate is still unknown after all choices."""
        unknown: Mask = mask & ((self.lanes.quality[row] & np.uint8(taint.UNKNOWN)) != 0)
        for at, some in self._definitions(row, unknown):
            truth = self._truth(at, some)
            for value in (NO, YES):
                there = some & (truth == value)
                self._set(row, there, value == YES)
                unknown = unknown & ~there
        return unknown

    def propagate(self, row: int, mask: Mask, asked: frozenset[int] = frozenset()) -> Mask:
        """The same, also by choices for predicates computed from it, or from which it is computed; ``asked`` are rows
        visited on the way here.
        """
        if row in asked:
            return self.unknown_lanes(row, mask)
        asked |= {row}
        for at, some in self._definitions(row, self.unknown_lanes(row, mask)):
            literal, _, frame = self.literals[at]
            for register, _ in literal.parts if isinstance(literal, Mixed) else ():
                self.propagate(frame + register.index, some, asked)
        for other in self.dependents.get(row, ()):
            for at, some in self._definitions(other, self.unknown_lanes(row, mask) & self.chosen_lanes(other)):
                literal, _, frame = self.literals[at]
                if isinstance(literal, Mixed):
                    value = self.lanes.values[other] != 0
                    self._divide(literal, frame, some & value, holds=True)
                    self._divide(literal, frame, some & ~value, holds=False)
        return self.unknown_lanes(row, mask)

    def choose(self, row: int, mask: Mask, *, holds: bool) -> None:
        """Choose the value of an unknown predicate in these lanes: it ``holds``, or does not."""
        self._set(row, mask, holds)
        for at, some in self._definitions(row, mask):
            self._learn(at, some, holds)

    def chosen_lanes(self, row: int) -> Mask:
        """The lanes in which a predicate is known only by a choice."""
        found = self.chosen_in.get(row)
        return np.zeros(self.lanes.count, np.bool_) if found is None else found

    def _set(self, row: int, mask: Mask, holds: bool) -> None:
        if not mask.any():
            return
        self.chosen_in.setdefault(row, np.zeros(len(mask), np.bool_))[mask] = True
        self.lanes.values[row][mask] = holds
        self.lanes.quality[row][mask] &= KNOWN

    def _definitions(self, row: int, mask: Mask) -> list[tuple[int, Mask]]:
        """The definitions of the predicate, with their lanes."""
        origin = self.origin.get(row)
        if origin is None or not mask.any():
            return []
        return [(int(at), mask & (origin == at)) for at in distinct(origin[mask]) if at != NONE]

    def _truth(self, at: int, mask: Mask) -> Truth:
        """What the choices so far imply for a predicate defined at a place."""
        literal, _, frame = self.literals[at]
        out = np.full(len(mask), NONE, np.int8)
        if isinstance(literal, Mixed):
            parts = [
                (self.unknown_lanes(frame + r.index, mask), frame + r.index, negated) for r, negated in literal.parts
            ]
            sure = [(~unknown, (self.lanes.values[row] != 0) ^ negated) for unknown, row, negated in parts]
            out[np.logical_and.reduce([s for s, _ in sure])] = NO if literal.some else YES
            for s, value in sure:
                out[s & (value == literal.some)] = YES if literal.some else NO
            return out
        if not isinstance(literal, Bound):
            told = self.comparisons.get((frame, *literal.key))
            return out if told is None else np.where(told == NONE, told, told ^ literal.negated).astype(np.int8)
        found = self.ranges.get((frame + literal.register.index, literal.kind))
        if found is None:
            return out
        low, high = found
        least = literal.least
        if literal.equal:
            out[(low > least) | (high < least)] = NO
            out[(low == least) & (high == least)] = YES
            told = self.comparisons.get((frame, literal.register, literal.kind, literal.least))
            if told is not None:
                out[(out == NONE) & (told == NO)] = NO
        else:
            out[low >= least] = YES
            out[high < least] = NO
        return np.where(out == NONE, out, out ^ literal.negated).astype(np.int8)

    def _learn(self, at: int, mask: Mask, holds: bool) -> None:
        """Record what follows from the choice of a predicate defined at a place."""
        literal, _, frame = self.literals[at]
        if isinstance(literal, Mixed):
            self._divide(literal, frame, mask, holds=holds)
            return
        holds = holds is not literal.negated
        if not isinstance(literal, Bound):
            rows = [frame + r.index for r in literal.registers]
            self._table((frame, *literal.key), rows)[mask] = holds
            return
        row = frame + literal.register.index
        key = row, literal.kind
        if key not in self.ranges:
            self.ranges[key] = np.full(len(mask), -END, np.int64), np.full(len(mask), END, np.int64)
            self.keys.setdefault(row, set()).add(key)
        low, high = self.ranges[key]
        least = literal.least
        if literal.equal and holds:
            low[mask] = high[mask] = least
        elif literal.equal:
            self._table((frame, literal.register, literal.kind, literal.least), [row])[mask] = NO
        elif holds:
            low[mask] = np.maximum(low[mask], least)
        else:
            high[mask] = np.minimum(high[mask], least - 1)

    def _divide(self, literal: Mixed, frame: int, mask: Mask, *, holds: bool) -> None:
        """Pass a choice on to the operands of a conjunction or disjunction: those that must have one value get it;
        where one of them suffices, the last unknown one does if no other does.
        """
        rows = [(frame + r.index, negated) for r, negated in literal.parts]
        left = np.zeros(len(mask), np.int64)
        if holds is literal.some:
            for row, negated in rows:
                unknown = self.unknown_lanes(row, mask)
                left += unknown
                mask = mask & (unknown | (((self.lanes.values[row] != 0) ^ negated) != holds))
            mask = mask & (left == 1)
        for row, negated in rows if mask.any() else ():
            self.choose(row, self.unknown_lanes(row, mask), holds=holds is not negated)

    def _table(self, key: tuple[object, ...], rows: list[int]) -> Truth:
        if key not in self.comparisons:
            self.comparisons[key] = np.full(self.lanes.count, NONE, np.int8)
            for row in rows:
                self.keys.setdefault(row, set()).add(key)
        return self.comparisons[key]
