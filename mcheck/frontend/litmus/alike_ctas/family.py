"""Sketches with any number of CTAs that are alike: whether pairs of them stand for all, and what they access.

The argument is in ``mcheck.proofs.cta_pairs``. This module checks its conditions on the syntax tree, in which the
number of CTAs is a name: what follows for one thread of a CTA then holds in each CTA, however many there are.
No branch, no address and no strong access depends on registers that vary
(``mcheck.frontend.litmus.alike_ctas.registers``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.alike_ctas.addresses import find_place, objects_at
from mcheck.frontend.litmus.alike_ctas.copies import INSIDE_ONE_CTA, GlobalSide, check_inside, sides_of
from mcheck.frontend.litmus.alike_ctas.forms import LinearForms
from mcheck.frontend.litmus.alike_ctas.places import FamilyThread, find_places, threads_of
from mcheck.frontend.litmus.alike_ctas.registers import Drawn, Registers, Surroundings
from mcheck.frontend.litmus.alike_ctas.signals import TurnStep, depends_on_number, read_turns
from mcheck.frontend.litmus.alike_ctas.words import (
    Reduction,
    SharedAccess,
    SharedWords,
    WordsReader,
    adds_one,
    check_aligned,
    initial_value,
    is_reduction,
)
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Step
from mcheck.ir import ops
from mcheck.ir.cta_family import (
    NUMBER,
    CtaFamily,
    FamilyAccess,
    FamilyTurns,
    Linear,
    NotAlike,
    variable,
)
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import MemObject
from mcheck.ir.ops import Op, mbarrier_of, performed_operation
from mcheck.ir.resolve import expressions
from mcheck.ir.scopes import is_grid_fence
from mcheck.ir.type_sizes import type_size

MAX_STATEMENTS = 20_000
"""Maximum number of statements of a CTA, loops unrolled, that are followed."""
SCHEDULED = ("activemask", "mapa")
"""Arithmetic that depends on the schedule, or on the place of a thread in its cluster."""
FOLLOWED = (ops.Alu, ops.Load, ops.Store, ops.Atomic, ops.Fence, ops.Barrier, ops.WarpSync, *INSIDE_ONE_CTA)
AWAITED = (ops.Load, ops.MbarrierWait)
MBARRIER = 8
"""Bytes of an mbarrier (PTX ISA 9.7.13.15.1)."""


def read_family(
    roles: Sequence[Role], objects: Mapping[str, MemObject], larger: Mapping[str, MemObject], parameter: str
) -> CtaFamily:
    """The family of a sketch. ``objects`` are those for the number 1, ``larger`` those for 2. Raises ``NotAlike``."""
    first, end = find_places(roles, parameter)
    shift = end.plus(variable(NUMBER), -1)
    if shift.terms:
        raise NotAlike(f"the number of CTAs is not {parameter} plus a constant")
    for item in objects.values():
        if item.alias_of is not None or item.copies or item.earlier_grid is not None or item.gpus is not None:
            raise NotAlike(f"{item.name} is not a plain variable", item.span)
    reader = _Reader(objects, parameter, first, end, least=max(0, first + 1 - shift.constant))
    threads = threads_of(roles, first, end)
    while True:  # what varies is found in any order of the statements
        known = len(reader.registers.varying), len(reader.varying_objects), reader.counting
        reader.begin()
        for thread in threads:
            reader.follow(thread)
        if known == (len(reader.registers.varying), len(reader.varying_objects), reader.counting):
            break
    words, turns = reader.conclude()
    sizes = {
        name: Linear(2 * item.size - larger[name].size, ((NUMBER, larger[name].size - item.size),))
        if larger[name].size != item.size
        else Linear(item.size)
        for name, item in objects.items()
    }
    return CtaFamily(
        parameter=parameter, first=first, shift=shift.constant,
        fixed=frozenset(t.cta for t in threads if t.cta is not None), accesses=words.accesses, sizes=sizes,
        counter=words.counter if turns is None else None, waits=words.waits, turns=turns,
    )  # fmt: skip


# --- statements -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    """Follows the threads of a CTA of each kind."""

    objects: Mapping[str, MemObject]
    parameter: str
    first: int
    end: Linear
    least: int
    registers: Registers = field(default_factory=Registers)
    varying_objects: set[str] = field(default_factory=set)
    """Objects in shared memory that may hold what varies."""
    accesses: list[FamilyAccess] = field(default_factory=list)
    strong: list[SharedAccess] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    non_coherent: dict[str, Span | None] = field(default_factory=dict)
    turn_steps: list[TurnStep] = field(default_factory=list)
    fences: set[tuple[int, int]] = field(default_factory=set)
    """Wide fences that are executed under no condition, by thread and place in its code."""
    counters: frozenset[str] = frozenset()
    left: int = MAX_STATEMENTS

    @property
    def counting(self) -> frozenset[str]:
        """The objects in which CTAs count themselves, as far as the statements have been followed."""
        awaited = {s.word[0] for s in self.strong if isinstance(s.op, ops.Await)}
        awaited |= {s.row.object for s in self.turn_steps if isinstance(s.op, ops.Await)}
        return frozenset(
            s.word[0] for s in self.strong if adds_one(s) and (not is_reduction(s.op) or s.word[0] in awaited)
        )

    def begin(self) -> None:
        """Forget what the statements showed, but for what varies."""
        self.counters = self.counting
        self.accesses, self.strong, self.reductions, self.left = [], [], [], MAX_STATEMENTS
        self.registers = Registers(self.registers.varying)
        self.non_coherent, self.turn_steps, self.fences = {}, [], set()

    def follow(self, thread: FamilyThread) -> None:
        """Follow a thread. Raises ``NotAlike``."""
        forms = LinearForms(thread.specials, self.first, self.least)
        names = {self.parameter: variable(NUMBER)}
        self._body(thread.body, Surroundings(thread=thread, forms=forms, names=names))

    def _body(self, body: Body, where: Surroundings) -> None:
        names = dict(where.names)
        for statement in body.steps:
            here = replace(where, names=names)
            match statement:
                case Step():
                    self._step(statement, here)
                case Define(name, value):
                    found = here.linear(value)
                    if found is None:
                        raise NotAlike(f"{name} is not linear in the number of a CTA", statement.span)
                    names[name] = found
                case For():
                    self._for(statement, here)
                case If():
                    self._if(statement, here)
                case Body():
                    self._body(statement, here)
                case Mark():
                    raise NotAlike("a label: only `await` and `if` are followed", statement.span)

    def _for(self, loop: For, where: Surroundings) -> None:
        low, high = where.linear(loop.low), where.linear(loop.high)
        if low is None or high is None:
            raise NotAlike("the bounds of a loop are not linear", loop.span)
        if low.terms or high.terms:
            inner = where.forms.add_variable(loop.variable, low, high)
            names = {**where.names, loop.variable: inner}
            self._body(loop.body, replace(where, names=names, loops=(*where.loops, inner)))
            return
        for value in range(low.constant, high.constant):
            self._take(loop.span)
            self._body(loop.body, replace(where, names={**where.names, loop.variable: Linear(value)}))

    def _take(self, span: Span | None) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotAlike(f"a CTA has more than {MAX_STATEMENTS} statements", span)

    def _if(self, choice: If, where: Surroundings) -> None:
        known = where.linear(choice.condition)
        if known is not None and not known.terms:
            self._body(choice.then if known.constant else choice.otherwise, where)
            return
        then, otherwise = self.registers.is_last(choice.condition, where)
        if then is None and not self.registers.is_fixed(choice.condition, where):
            raise NotAlike("a branch depends on what differs between CTAs", choice.span)
        self._body(choice.then, replace(where, conditional=True, last=where.last or then is True))
        self._body(choice.otherwise, replace(where, conditional=True, last=where.last or otherwise is True))

    # --- operations ---------------------------------------------------------------------------------------------

    def _step(self, step: Step, where: Surroundings) -> None:
        self._take(step.op.span)
        op = step.op
        if step.decode_folded is not None:
            known = isinstance(op, ops.Alu | ops.Store)  # looked at below
            if not known and not all(self.registers.is_fixed(e, where) for e in step.foldable):
                raise NotAlike("an operand depends on what differs between CTAs", op.span)
            op = step.decode_folded(lambda e: _folded(e, where))
        inner = performed_operation(op)
        if op.guard is not None:
            if not self.registers.is_fixed(op.guard.reg, where):
                raise NotAlike("a predicate depends on what differs between CTAs", op.span)
            where = replace(where, conditional=True)
        self.registers.count_writes(op, where)
        if not isinstance(inner, FOLLOWED) or (op is not inner and not isinstance(inner, AWAITED)):
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        if isinstance(inner, INSIDE_ONE_CTA):
            self._inside(op, inner, where)
        elif isinstance(inner, ops.Load | ops.Store | ops.Atomic):
            self._access(op, inner, where)
        elif isinstance(inner, ops.Alu):
            self._compute(inner, where)
        else:
            if is_grid_fence(inner) and not where.conditional:
                self.fences.add((where.thread.number, -self.left))
            restricted = isinstance(inner, ops.Fence) and inner.restrict not in (None, "mbarrier_init")
            if restricted or where.looped or (isinstance(inner, ops.Barrier) and inner.instance is not None):
                raise NotAlike(f"'{op.text}' is not followed here", op.span)
            if not all(self.registers.is_fixed(e, where) for _, e in expressions(inner)):
                raise NotAlike("an operand depends on what differs between CTAs", op.span)
        self.registers.keep_number(op, where)

    def _compute(self, op: ops.Alu, where: Surroundings) -> None:
        if op.op in SCHEDULED:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        self.registers.compute(op, where)

    def _access(
        self,
        op: Op,
        inner: ops.Load | ops.Store | ops.Atomic,
        where: Surroundings,
    ) -> None:
        rows = isinstance(inner, ops.Load | ops.Store) and inner.matrix_rows
        if inner.proxy != "generic" or inner.multimem is not None or rows:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        name, offset = self._place(inner.address, op.span, where)
        size = type_size(inner.type) * inner.scalar_count
        space = self.objects[name].space
        if space == "shared":
            self._access_shared(op, inner, size, where)
            return
        if offset is None:
            raise NotAlike("an address is not linear in the number of a CTA", op.span)
        if isinstance(inner, ops.Load) and inner.non_coherent:
            self.non_coherent.setdefault(name, op.span)
        weak = not isinstance(inner, ops.Atomic) and inner.sem == "weak" and op is inner
        if weak and (space != "global" or name not in self.counters):
            check_aligned(offset, size, op.span)
            self.registers.vary(inner, where)
            writes = isinstance(inner, ops.Store)
            self.accesses.append(self._row(name, offset, size, where, op, writes=writes))
            return
        if self._takes_turns(op, inner, name, offset, size, where):
            return
        if isinstance(inner, ops.Atomic) and is_reduction(inner) and not where.looped and space == "global":
            self._reduce(Reduction(
                self._row(name, offset, size, where, op, reduces=True), size, "generic", inner.scope
            ))  # fmt: skip
            if offset.terms:
                return
        if where.looped or offset.terms or space != "global":
            raise NotAlike("strong accesses of words that differ between CTAs, or in a loop over them", op.span)
        shared = SharedAccess(op, (name, offset.constant), size, where)
        self.strong.append(shared)
        if name in self.counters or adds_one(shared):
            self.registers.vary(inner, where)
            if adds_one(shared) and isinstance(inner, ops.Atomic) and inner.dst is not None:
                last = Linear(initial_value(self.objects, shared.word, size) - 1 - self.first).plus(self.end)
                self.registers.drawn[where.thread.number] = Drawn(inner.dst.name, last, size)

    def _row(
        self, name: str, offset: Linear, size: int, where: Surroundings,
        op: Op, *, writes: bool = True, asynchronous: bool = False, reduces: bool = False,
    ) -> FamilyAccess:  # fmt: skip
        return FamilyAccess(
            thread=where.thread.number, cta=where.thread.cta, object=name, offset=offset, size=size, writes=writes,
            variables=where.forms.variables_of(offset, *where.loops), asynchronous=asynchronous, reduces=reduces,
            span=op.span,
        )  # fmt: skip

    def _reduce(self, made: Reduction) -> None:
        if made.access.object in self.counters:
            if made.access.offset.terms or made.access.asynchronous:
                raise NotAlike("the counter is reduced into, too", made.access.span)
            return  # said of all strong accesses of the counter
        check_aligned(made.access.offset, made.access.size, made.access.span)
        self.reductions.append(made)

    def _inside(self, op: Op, inner: Op, where: Surroundings) -> None:
        """An operation of which other CTAs notice at most the accesses of global memory."""
        if where.looped:
            raise NotAlike(f"'{op.text}' is not followed in a loop over the CTAs", op.span)
        check_inside(inner)
        addresses: list[Expr] = []
        if isinstance(inner, ops.CpAsync | ops.BulkCopy):
            there, here, writes = sides_of(inner)
            addresses = [here, there.address]
            size = self._copy(op, there, where)
            objects = self._objects_at(here, size, op, where)
            if writes:
                self.varying_objects |= objects
        if (bar := mbarrier_of(inner)) is not None:
            addresses.append(bar)
            self._objects_at(bar, MBARRIER, op, where)
        if not all(any(e is a for a in addresses) or self.registers.is_fixed(e, where) for _, e in expressions(inner)):
            raise NotAlike("an operand depends on what differs between CTAs", op.span)

    def _objects_at(self, address: Expr, size: int, op: Op, where: Surroundings) -> set[str]:
        """The objects in shared memory that so many bytes may be of. Raises ``NotAlike`` if they are elsewhere."""
        name, offset = self._place(address, op.span, where)
        if self.objects[name].space != "shared":
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        return objects_at(name, offset, size, self.objects)

    def _copy(self, op: Op, side: GlobalSide, where: Surroundings) -> int:
        """What a copy accesses in global memory; how many bytes."""
        name, offset = self._place(side.address, op.span, where)
        size, aligned = (Linear(e) if isinstance(e, int) else where.linear(e) for e in (side.size, side.aligned))
        if offset is None or size is None or aligned is None or size.terms or size.constant <= 0:
            raise NotAlike("the address of a copy is not linear, or its size is not fixed", op.span)
        if self.objects[name].space != "global" or name in self.counters:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        check_aligned(offset, aligned.constant, op.span)
        row = self._row(
            name, offset, size.constant, where, op, writes=side.writes, asynchronous=True,
            reduces=side.reduces > 0,
        )  # fmt: skip
        if side.reduces:
            self._reduce(Reduction(row, side.reduces, side.proxy, side.scope or "gpu"))
        else:
            self.accesses.append(row)
        return size.constant

    def _takes_turns(
        self, op: Op, inner: Op, name: str, offset: Linear, size: int, where: Surroundings,
    ) -> bool:  # fmt: skip
        """Keep a wait for another CTA that is alike, or a signal for one."""
        alike = where.thread.cta is None and not where.looped and name not in self.counters
        if not alike or self.objects[name].space != "global":
            return False
        if isinstance(inner, ops.Store):
            value = inner.srcs[0]
        elif isinstance(op, ops.Await) and isinstance(inner, ops.Load) and op.compare is not None:
            value = op.compare[1]
            if not offset.terms and self.registers.is_fixed(value, where):
                return False  # a wait for a flag
        else:
            return False
        row = self._row(name, offset, size, where, op)
        number = self.registers.number(value, where)
        self.turn_steps.append(TurnStep(where.thread, op, row, number, -self.left, where.conditional))
        self.registers.vary(op, where)
        return True

    def _place(self, address: Expr, span: Span | None, where: Surroundings) -> tuple[str, Linear | None]:
        return find_place(address, self.objects, where, self.registers, span)

    def _access_shared(
        self,
        op: Op,
        inner: ops.Load | ops.Store | ops.Atomic,
        size: int,
        where: Surroundings,
    ) -> None:
        if where.looped:
            raise NotAlike("shared memory is accessed in a loop over the CTAs", op.span)
        objects = self._objects_at(inner.address, size, op, where)
        values = () if isinstance(inner, ops.Load) else inner.srcs
        if not all(self.registers.is_fixed(e, where) for e in values):
            self.varying_objects |= objects
        varies = not self.varying_objects.isdisjoint(objects)
        if isinstance(op, ops.Await) and (varies or not self._waits_for_fixed(op, where)):
            raise NotAlike("a wait depends on what differs between CTAs", op.span)
        if varies:
            self.registers.vary(inner, where)

    def _waits_for_fixed(self, op: ops.Await, where: Surroundings) -> bool:
        return op.compare is not None and not op.followed and self.registers.is_fixed(op.compare[1], where)

    def conclude(self) -> tuple[SharedWords, FamilyTurns | None]:
        """What the CTAs share, and how they take turns. Raises ``NotAlike``."""
        for access in (*self.accesses, *(r.access for r in self.reductions)):
            if access.writes and access.object in self.non_coherent:
                raise NotAlike(f"{access.object} is written", self.non_coherent[access.object])
        reader = WordsReader(self.objects, self.first, self.end, self.registers)
        words = reader.read(self.strong, self.accesses, self.reductions)
        if not self.turn_steps:
            return words, None
        counter, span = words.counter, self.turn_steps[-1].op.span
        others = {s.word[0] for s in self.strong} | {access.object for access in words.accesses}
        turns = read_turns(
            self.turn_steps, self.fences, others, self.objects, self.first, None if counter is None else counter.first
        )
        if counter is not None and (not turns.draws or counter.waits or self.registers.asked):
            raise NotAlike("CTAs both take turns and count themselves", span)
        if turns.draws and any(depends_on_number(access) for access in words.accesses):
            raise NotAlike("CTAs draw tickets, and access places by their numbers", span)
        return words, turns


def _folded(expr: Expr, where: Surroundings) -> Expr:
    found = where.linear(expr)
    return expr if found is None or found.terms else Const(found.constant)
