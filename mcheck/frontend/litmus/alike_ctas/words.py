"""The words that CTAs of a sketch share, any number of them: a counter, flags of others, words that they reduce into.

The conditions are those of ``mcheck.proofs.cta_pairs``, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.alike_ctas.registers import COUNTED_TYPES, SMALL, Registers, Surroundings
from mcheck.ir import ops
from mcheck.ir.cta_family import FamilyAccess, FamilyCounter, Linear, NotAlike
from mcheck.ir.expr import Expr
from mcheck.ir.memory import MemObject
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.scopes import GRID_SCOPES

Word = tuple[str, int]
"""An object and an offset in it."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """An access of a word that several CTAs access: strong, or of the counter."""

    op: Op
    word: Word
    size: int
    where: Surroundings


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of elements of so many bytes, the proxy that it goes through, and its scope."""

    access: FamilyAccess
    element: int
    proxy: str
    scope: str


@dataclass(frozen=True, slots=True)
class SharedWords:
    """What CTAs share: their counter, whether threads wait for other CTAs, and all accesses that order nothing."""

    counter: FamilyCounter | None
    waits: bool
    accesses: tuple[FamilyAccess, ...]


def is_reduction(op: Op) -> bool:
    """Whether this is a ``red``: its read supplies no acquire pattern (PTX ISA 8.8)."""
    return isinstance(op, ops.Atomic) and op.is_red


def adds_one(shared: SharedAccess) -> bool:
    """Whether an access may count a CTA."""
    op = shared.op
    if not isinstance(op, ops.Atomic) or op.type not in COUNTED_TYPES or shared.where.thread.cta is not None:
        return False
    return op.op == "add" and shared.where.linear(op.srcs[0]) == Linear(1)


def initial_value(objects: Mapping[str, MemObject], word: Word, size: int) -> int:
    """The initial value of a word."""
    name, offset = word
    content = objects[name].init or b""
    return int.from_bytes(content[offset : offset + size].ljust(size, b"\0"), "little")


def check_aligned(offset: Linear, size: int, span: Span | None) -> None:
    """Check that a place is a multiple of a size in all CTAs; objects are aligned. Raises ``NotAlike``."""
    if any(part % size for part in (offset.constant, *(factor for _, factor in offset.terms))):
        raise NotAlike("an access may not be aligned", span)


@dataclass(frozen=True, slots=True)
class WordsReader:
    """Looks through what threads of each kind of CTA do to the words that they share."""

    objects: Mapping[str, MemObject]
    first: int
    end: Linear
    registers: Registers

    def read(
        self, strong: Sequence[SharedAccess], weak: Sequence[FamilyAccess], reductions: Sequence[Reduction]
    ) -> SharedWords:
        """What the CTAs share. Raises ``NotAlike``."""
        reduced = {made.access.object for made in reductions} - {
            s.word[0] for s in strong if not is_reduction(s.op)
        }  # what is accessed strongly otherwise is a flag, if anything
        for name in reduced:
            _check_reduced([made for made in reductions if made.access.object == name], weak)
        counted = {made.access.object for made in reductions}
        counts = [s for s in strong if adds_one(s) and s.word[0] not in reduced]
        words = {s.word[0] for s in counts}
        if len(words) > 1:
            raise NotAlike("CTAs count themselves in several words", counts[-1].op.span)
        counter = self._counter(strong, counts, counts[0].word) if counts else None
        weakly = {access.object: access.span for access in weak}
        for name in counted - reduced - words:
            for made in (r.access for r in reductions if r.access.object == name):
                if made.asynchronous:
                    raise NotAlike("a word is reduced into by copies, and accessed strongly", made.span)
                if made.offset.terms:
                    raise NotAlike(f"{name} is accessed strongly, and reduced into at places that differ", made.span)
        for shared in strong:
            name = shared.word[0]
            if name in reduced:
                continue
            if name in weakly:
                raise NotAlike("a word is accessed both weakly and strongly", weakly[name])
            if name not in words:
                self._check_flag(shared)
        accesses = *weak, *(made.access for made in reductions if made.access.object in reduced)
        return SharedWords(counter, any(isinstance(s.op, ops.Await) for s in strong), accesses)

    def _fixed(self, expr: Expr, shared: SharedAccess) -> bool:
        return self.registers.is_fixed(expr, shared.where)

    def _counter(self, strong: Sequence[SharedAccess], counts: Sequence[SharedAccess], word: Word) -> FamilyCounter:
        if len(counts) != 1 or counts[0].where.conditional or counts[0].where.thread.cta is not None:
            raise NotAlike("a CTA does not count itself exactly once", counts[-1].op.span)
        counting = counts[0]
        size, first = counting.size, initial_value(self.objects, word, counting.size)
        last = Linear(first - 1 - self.first).plus(self.end)
        atomic = counting.op
        assert isinstance(atomic, ops.Atomic)
        if atomic.scope not in GRID_SCOPES or first >= SMALL:
            raise NotAlike("the counter does not count at scope gpu from a small number on", atomic.span)
        waits = asks = False
        for shared in strong:
            if shared.word[0] != word[0] or shared is counting:
                continue
            op = shared.op
            if shared.word != word or shared.size != size:
                raise NotAlike("the counter is accessed in parts", op.span)
            if isinstance(op, ops.Await):
                waits = True
                _check_wait(shared, op, last)
            else:
                asks = True
                if not (
                    isinstance(op, ops.Store) and shared.where.last and shared.where.thread is counting.where.thread
                ):
                    raise NotAlike("the counter is accessed otherwise than by one atomic of each CTA", op.span)
                if op.sem != "weak" and op.scope not in GRID_SCOPES:
                    raise NotAlike("the counter is accessed at a narrow scope", op.span)
        if waits and (asks or atomic.dst is not None):
            raise NotAlike("CTAs both wait for the counter and ask for the number drawn", atomic.span)
        if atomic.dst is not None and self.registers.written[counting.where.thread.number, atomic.dst.name] != 1:
            raise NotAlike("the register with the number drawn is written twice", atomic.span)
        return FamilyCounter(word[0], word[1], size, first, waits)

    def _check_flag(self, shared: SharedAccess) -> None:
        """Check that a word is written by CTAs that are not among the alike ones alone. Raises ``NotAlike``."""
        op, inner = shared.op, performed_operation(shared.op)
        if isinstance(op, ops.Await):
            if op.compare is None or op.followed or not self._fixed(op.compare[1], shared):
                raise NotAlike("a wait depends on what differs between CTAs", op.span)
        elif not isinstance(inner, ops.Load):
            assert isinstance(inner, ops.Store | ops.Atomic)
            if shared.where.thread.cta is None:
                raise NotAlike("CTAs also share words by strong accesses or atomics", op.span)
            if not all(self._fixed(e, shared) for e in inner.srcs):
                raise NotAlike("what is written to a word that steers threads differs", op.span)


def _check_wait(shared: SharedAccess, op: ops.Await, last: Linear) -> None:
    """Check that a wait ends when all CTAs have counted themselves. Raises ``NotAlike``."""
    inner = op.inner
    assert isinstance(inner, ops.Load)
    if op.compare is not None and not op.followed and len(inner.dsts) == 1 and inner.type in COUNTED_TYPES:
        test, right = op.compare
        bound = shared.where.linear(right)
        behind = None if bound is None else bound.plus(last, -1)
        ends = {"==": Linear(1), ">=": Linear(1), ">": Linear()}.get(test)
        if behind is not None and behind == ends and (inner.sem == "weak" or inner.scope in GRID_SCOPES):
            return
    raise NotAlike("a wait for the counter does not end when all CTAs have counted themselves", op.span)


def _check_reduced(made: Sequence[Reduction], weak: Sequence[FamilyAccess]) -> None:
    """Check that reductions of one object are morally strong, each with each other that overlaps, and that they are
    the same ones in all pairs of CTAs, or that nothing else is there. Raises ``NotAlike``.
    """
    one = made[0]
    name = one.access.object
    others = [access for access in weak if access.object == name]
    for each in made:
        span = each.access.span
        if (each.proxy, each.element, each.access.size) != (one.proxy, one.element, one.access.size):
            raise NotAlike(f"{name} is reduced into by instructions of several kinds", span)
        if each.scope not in GRID_SCOPES:
            raise NotAlike(f"{name} is reduced into at a narrow scope", span)
        if others and each.access.offset.terms:
            raise NotAlike(f"{name} is accessed weakly, and reduced into at places that differ between CTAs", span)
    for access in others:
        if access.writes and access.cta is None:
            raise NotAlike(f"{name} is written weakly, and reduced into", access.span)
