"""Looks of one thread that hands what it finds to its whole CTA.

    bar.sync 0;                               // all have read what was handed on before
    @p ld.acquire.gpu r, [word];              // one thread looks
    @p st.shared [s], r;
    bar.sync 0;
    ld.shared x, [s];                         // all threads get what it has found

So Triton compiles a scalar atomic that only reads, as a look-back has. The first round of a loop around it is executed,
and recorded, but for the look; from its last load on each warp is followed on all of its ways, as if each thread had
looked, and all had found the same (``mcheck.simt.grid.looks.warp_exploration``).

*Why other rounds may be left out.* All threads of the CTA are at the load. Where they go from there is decided by what
is the same in all of them alone: what was at the load, numbers, what has been handed on, and what is computed of these.
So all take one way, and come to the same barriers in the same order. The word ``s`` is the same in each round. Its
accesses of a later round are behind those of the first one, and in order among themselves, by the barriers around them.
What conflicts with one of them and comes before the first round is ordered by the first barrier. What comes behind the
last round conflicts with its load, if at all, where it conflicts with that of the first round as it is recorded, which
has no later barriers. The store of each round is before its second barrier, and so before everything behind it.

A thread that acquires before it stores to ``s`` does so for all threads: they come behind it by the barrier (8.9.4).
One that fences afterwards does so for itself alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.lane_arithmetic import low_mask, type_bits
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.known_bits import Bits, anything, extend
from mcheck.simt.grid.looks.warp_exploration import NOT_FOLLOWED, QUIET, Exploration
from mcheck.simt.grid.looks.warp_looks import look_at
from mcheck.simt.grid.looks.warp_states import Lanes, State
from mcheck.simt.grid.pairs.reduction import NotReducible


@dataclass(frozen=True, slots=True)
class HandedLook:
    """A look whose result is handed on: the places of its instructions in a function."""

    before: int
    look: int
    store: int
    barrier: int
    read: int

    @property
    def places(self) -> tuple[int, ...]:
        """The places of its instructions."""
        return self.before, self.look, self.store, self.barrier, self.read


def find_handed_looks(function: ptx.Function, is_look: Callable[[ptx.Statement], bool]) -> Iterator[HandedLook]:
    """The looks of a function that are handed on."""
    for place, statement in enumerate(function.body):
        if is_look(statement) and statement.guard is not None:
            found = _find(function, place)
            if found is not None:
                yield found


def _find(function: ptx.Function, look: int) -> HandedLook | None:
    body = function.body
    before = look - 1
    while before >= 0 and body[before].only_computes:
        before -= 1
    store = _next(function, look)
    barrier = _next(function, store)
    read = _next(function, barrier)
    if before < 0 or read >= len(body):
        return None
    found = HandedLook(before, look, store, barrier, read)
    labels = set(function.labels.values())
    if labels & set(range(before + 1, read + 1)) or not all(map(_is_whole_barrier, (body[before], body[barrier]))):
        return None
    return found if _hands_on(function, found) else None


def _next(function: ptx.Function, place: int) -> int:
    """The next instruction that does not just compute."""
    place += 1
    while place < len(function.body) and function.body[place].only_computes:
        place += 1
    return place


def _is_whole_barrier(statement: ptx.Statement) -> bool:
    """Whether a barrier is that of all threads of the CTA."""
    plain = statement.kind is Kind.BARRIER and statement.guard is None and statement.opcode.has("sync")
    return plain and statement.operands == (ptx.Immediate(0),)


def _hands_on(function: ptx.Function, found: HandedLook) -> bool:
    """Whether the thread that looks stores what it has found, and all threads load that."""
    look, store, read = (function.body[at] for at in (found.look, found.store, found.read))
    if store.kind is not Kind.STORE or read.kind is not Kind.LOAD or read.guard is not None:
        return False
    if any(s.opcode.space != "shared" or s.opcode.is_strong or s.opcode.vector != 1 for s in (store, read)):
        return False
    (target,) = look.operands[:1]
    if look.opcode.vector != 1 or not isinstance(target, ptx.Register) or store.operands[1] != target:
        return False
    kinds = {s.opcode.type for s in (look, store, read)}
    plain = len({type_bits(kind) for kind in kinds}) == 1 and all(kind[0] in "bus" for kind in kinds)
    assert look.guard is not None
    kept = {target.index, look.guard.register.index, *(r.index for s in (look, store) for r in s.uses)}
    between = function.body[found.look + 1 : found.read]
    return plain and store.guard == look.guard and not any(r.index in kept for s in between for r in s.defs)


@dataclass
class HandedExploration(Exploration):
    """The exploration of the ways of one warp from the load of what one thread of its CTA has found."""

    first: HandedLook = field(kw_only=True)
    handed: Mapping[int, HandedLook] = field(kw_only=True)
    """By ``id`` of each of their instructions, the looks that are handed on."""
    whole: Callable[[ptx.Operand], Bits] = field(kw_only=True)
    """What an operand holds at the beginning, in the lanes of the CTA."""
    alike: bool = field(default=True, kw_only=True)
    """Whether other warps may do all that this one has done."""

    def of_others(self, state: State) -> dict[int, Bits] | None:
        """What the registers that were written hold in other warps, which go the same way: what is the same in all
        threads, or anything. ``None`` if more is known of this warp, or others may do something else.
        """
        found = dict[int, Bits]()
        widths = {self.unit.frame + r.index: type_bits(r.type) or 64 for r in self.unit.function.registers}
        for row, bits in state.registers.items():
            nothing = low_mask(widths[row])
            if self._uniform_row(state, row).all():
                found[row] = Bits(np.full_like(bits.value, bits.value[0]), np.full_like(bits.unknown, bits.unknown[0]))
            elif (bits.unknown == nothing).all():
                found[row] = bits
            else:
                return None
        return found if self.alike else None

    def _step(self, statement: ptx.Statement, state: State, mask: Lanes, *, final: bool, apart: bool) -> bool:
        """A step, of a look that is handed on, too."""
        handed = self.handed.get(id(statement))
        if handed is None:
            plain = statement.only_computes or statement.kind in QUIET
            if statement.kind is Kind.LOAD and statement.guard is None:
                plain = self._is_same(statement.place, state)
            follows = not self.is_look(statement) and super()._step(statement, state, mask, final=final, apart=apart)
            self.alike &= plain or not follows
            return follows
        body = self.unit.function.body
        if apart or not mask.all() or not self._is_like_first(handed, state):
            return False
        if statement is body[handed.look]:
            state.write(self.unit.frame + statement.defs[0].index, anything(64, (WARP,)), np.zeros_like(mask))
        elif statement is body[handed.read]:
            place = body[handed.look].place
            address = self._operand(place, state)
            if not self._is_same(place, state):
                return False
            results = look_at(body[handed.look], address, state, mask, partial(self.look, final=final))
            if results is None:
                return False
            kind = statement.opcode.type
            width = low_mask(type_bits(kind))
            results = [extend(Bits(r.value & width, r.unknown & width), kind) for r in results]
            self._write(statement, state, results, mask, None, mask)
        return True

    def _is_like_first(self, handed: HandedLook, state: State) -> bool:
        """Whether one thread, the same as in the first round, looks, and hands on by the same word."""
        body = self.unit.function.body
        guards = [body[h.look].guard for h in (self.first, handed)]
        if guards[0] != guards[1] or guards[0] is None:
            return False
        if self.unit.frame + guards[0].register.index in state.registers:
            return False
        word = one_value(self.whole(body[self.first.read].place))
        found = [self._operand(body[at].place, state) for at in (handed.store, handed.read)]
        return word is not None and all(one_value(bits) == word for bits in found)

    def _branch(self, at: int, statement: ptx.Statement, state: State, mask: Lanes) -> int | None:
        following = super()._branch(at, statement, state, mask)
        return following if statement.guard is None or self._same_way(at, state, mask) else None

    def _same_way(self, at: int, state: State, *_: object, **__: object) -> bool:
        """Whether all threads of the CTA go the same way."""
        guard = self.unit.function.body[at].guard
        assert guard is not None
        return self._is_same(guard.register, state)

    def _reads_same(self, statement: ptx.Statement, state: State, *_: object, **__: object) -> bool:
        """Whether an instruction reads the same in all threads of the CTA."""
        sources = [x for o in statement.operands[1:] for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        return all(self._is_same(operand, state) for operand in sources)

    def _is_same(self, operand: ptx.Operand, state: State) -> bool:
        registers = list(ptx.operand_registers(operand))
        rows = [self.unit.frame + register.index for register in registers]
        if not any(row in state.registers for row in rows):
            return one_value(self.whole(operand)) is not None
        return all(
            self._uniform_row(state, row).all()
            if row in state.registers
            else one_value(self.whole(register)) is not None
            for row, register in zip(rows, registers, strict=True)
        )

    def _elsewhere(self, end: int, at: int, state: State, /) -> bytes:
        """What other warps of the CTA hold, as far as it is asked here."""
        rows = sorted(self.ways.region(at, end).named & self.ways.live[at])
        held = [row in state.registers or one_value(self.whole(self.register(row))) for row in rows]
        word = one_value(self.whole(self.unit.function.body[self.first.read].place))
        return repr((self.first.look, word, held)).encode()

    def _fixed(self, operand: ptx.Operand) -> Bits:
        return self.whole(operand)

    def _may_share(self) -> bool:
        return self.alike

    def _exchange(self, statement: ptx.Statement, state: State, mask: Lanes) -> tuple[list[Bits] | None, bool]:
        """The results of an exchange; those of other warps may be others."""
        return super()._exchange(statement, state, mask)[0], False

    def _acquires(self, *_: object, **__: object) -> bool:
        """A fence acquires nothing for the threads that have not looked."""
        return False

    def _try_apart(self, *_: object, **__: object) -> None:
        return None

    def _diverge(self, at: int, *_: object, **__: object) -> tuple[int, State]:
        raise NotReducible(NOT_FOLLOWED, self.unit.function.body[at].span)

    def _fork(self, at: int, state: State, mask: Lanes, *, final: bool, apart: bool) -> tuple[int, State]:
        if not self._same_way(at, state, mask):
            raise NotReducible(NOT_FOLLOWED, self.unit.function.body[at].span)
        return super()._fork(at, state, mask, final=final, apart=apart)


def one_value(bits: Bits) -> int | None:
    """The value that is known to be that of all lanes."""
    value = distinct(bits.value)
    return None if bits.unknown.any() or len(value) != 1 else int(value[0])
