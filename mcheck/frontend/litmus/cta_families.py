"""Sketches with any number of CTAs that are alike: whether pairs of them stand for all, and what they access.

The argument is in ``mcheck.proofs.cta_pairs``. This module checks its conditions on the syntax tree, in which the
number of CTAs is a name: what follows for one thread of a CTA then holds in each CTA, however many there are.

Registers are *varying* if they may hold what differs between CTAs, depends on how many there are, or was read from
memory that other CTAs write. No branch, no address and no strong access depends on them. The number that a CTA draws
from the counter is varying too, but whether it is the last one is not: of both answers all executions are followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.cta_addresses import find_place, objects_at
from mcheck.frontend.litmus.cta_copies import INSIDE_ONE_CTA, GlobalSide, check_inside, sides_of
from mcheck.frontend.litmus.cta_forms import LinearForms
from mcheck.frontend.litmus.cta_places import FamilyThread, find_places, threads_of
from mcheck.frontend.litmus.cta_signals import TICKET, TurnStep, depends_on_number, is_wide_fence, read_turns
from mcheck.frontend.litmus.cta_words import (
    COUNTED_TYPES,
    SMALL,
    Reduction,
    SharedAccess,
    SharedWords,
    Surroundings,
    WordsReader,
    adds_one,
    check_aligned,
    initial_value,
    is_fixed,
    is_reduction,
)
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
from mcheck.ir.def_use import written_registers
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.memory import MemObject
from mcheck.ir.ops import Op, mbarrier_of, performed_operation
from mcheck.ir.resolve import expressions
from mcheck.ir.spin_loops import COMPARISONS
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
            raise NotAlike(f"{item.name} is no plain variable", item.span)
    reader = _Reader(objects, parameter, first, end, least=max(0, first + 1 - shift.constant))
    threads = threads_of(roles, first, end)
    while True:  # what varies is found in any order of the statements
        known = len(reader.varying), len(reader.varying_objects), reader.counting
        reader.begin()
        for thread in threads:
            reader.follow(thread)
        if known == (len(reader.varying), len(reader.varying_objects), reader.counting):
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
    varying: set[tuple[int, str]] = field(default_factory=set)
    """Varying registers, by thread."""
    varying_objects: set[str] = field(default_factory=set)
    """Objects in shared memory that may hold what varies."""
    accesses: list[FamilyAccess] = field(default_factory=list)
    strong: list[SharedAccess] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    non_coherent: dict[str, Span | None] = field(default_factory=dict)
    drawn: dict[int, tuple[str, Linear, int]] = field(default_factory=dict)
    """The register with the number that a thread draws, the last such number, and the size of the word."""
    written: dict[tuple[int, str], int] = field(default_factory=dict)
    """How many statements write a register."""
    asked: bool = False
    """Whether something depends on which CTA has drawn the last number."""
    numbers: dict[tuple[int, str], Linear] = field(default_factory=dict)
    """Registers whose values are linear in the number of the CTA, or in its ticket."""
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
        self.drawn, self.written, self.non_coherent = {}, {}, {}
        self.numbers, self.turn_steps, self.fences, self.asked = {}, [], set(), False

    def follow(self, thread: FamilyThread) -> None:
        """Follow a thread. Raises ``NotAlike``."""
        forms = LinearForms(thread.specials, self.first, self.least)
        self._body(thread.body, thread, forms, Surroundings(names={self.parameter: variable(NUMBER)}))

    def _body(self, body: Body, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        names = dict(where.names)
        for statement in body.steps:
            here = replace(where, names=names)
            match statement:
                case Step():
                    self._step(statement, thread, forms, here)
                case Define(name, value):
                    found = forms.linear(value, names)
                    if found is None:
                        raise NotAlike(f"{name} is not linear in the number of a CTA", statement.span)
                    names[name] = found
                case For():
                    self._for(statement, thread, forms, here)
                case If():
                    self._if(statement, thread, forms, here)
                case Body():
                    self._body(statement, thread, forms, here)
                case Mark():
                    raise NotAlike("a label: only `await` and `if` are followed", statement.span)

    def _for(self, loop: For, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        low, high = forms.linear(loop.low, where.names), forms.linear(loop.high, where.names)
        if low is None or high is None:
            raise NotAlike("the bounds of a loop are not linear", loop.span)
        if low.terms or high.terms:
            inner = forms.add_variable(loop.variable, low, high)
            names = {**where.names, loop.variable: inner}
            self._body(loop.body, thread, forms, replace(where, names=names, loops=(*where.loops, inner)))
            return
        for value in range(low.constant, high.constant):
            self._take(loop.span)
            self._body(loop.body, thread, forms, replace(where, names={**where.names, loop.variable: Linear(value)}))

    def _take(self, span: Span | None) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotAlike(f"a CTA has more than {MAX_STATEMENTS} statements", span)

    def _if(self, choice: If, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        known = forms.linear(choice.condition, where.names)
        if known is not None and not known.terms:
            self._body(choice.then if known.constant else choice.otherwise, thread, forms, where)
            return
        then, otherwise = self._is_last(choice.condition, thread, forms, where)
        if then is None and not self._is_fixed(choice.condition, thread, forms, where):
            raise NotAlike("a branch depends on what differs between CTAs", choice.span)
        self._body(choice.then, thread, forms, replace(where, conditional=True, last=where.last or then is True))
        self._body(
            choice.otherwise, thread, forms, replace(where, conditional=True, last=where.last or otherwise is True)
        )

    # --- what is the same in all CTAs ---------------------------------------------------------------------------

    def _is_fixed(self, expr: Expr, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> bool:
        return is_fixed(expr, thread, forms, where, self.varying)

    def _is_last(
        self, expr: Expr, thread: FamilyThread, forms: LinearForms, where: Surroundings
    ) -> tuple[bool | None, bool | None]:
        """For a comparison of the number drawn that all but the last number answer alike: whether only the last one
        makes it true, and whether only the last one makes it false. Else ``None``.
        """
        match expr:
            case Unary("!", inner):
                yes, no = self._is_last(inner, thread, forms, where)
                return no, yes
            case Binary(op, Reg(name), right):
                return self._compares(op, name, right, thread, forms, where)
        return None, None

    def _compares(
        self, op: str, register: str, right: Expr, thread: FamilyThread, forms: LinearForms, where: Surroundings
    ) -> tuple[bool | None, bool | None]:
        found, bound = self.drawn.get(thread.number), forms.linear(right, where.names)
        if found is None or found[0] != register or bound is None:
            return None, None
        behind = bound.plus(found[1], -1)
        if behind.terms or behind.constant >= SMALL:  # `setp` takes what is left of a larger one modulo 2^32
            return None, None
        self.asked = True
        match op:
            case "==" | ">=" if behind.constant >= 0:
                return behind.constant == 0, False
            case "!=" | "<" if behind.constant >= 0:
                return False, behind.constant == 0
            case ">" if behind.constant >= -1:
                return behind.constant == -1, False
            case "<=" if behind.constant >= -1:
                return False, behind.constant == -1
        return None, None

    # --- operations ---------------------------------------------------------------------------------------------

    def _step(self, step: Step, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        self._take(step.op.span)
        op = step.op
        if step.decode_folded is not None:
            known = isinstance(op, ops.Alu | ops.Store)  # looked at below
            if not known and not all(self._is_fixed(e, thread, forms, where) for e in step.foldable):
                raise NotAlike("an operand depends on what differs between CTAs", op.span)
            op = step.decode_folded(lambda e: self._folded(e, forms, where))
        inner = performed_operation(op)
        if op.guard is not None:
            if not self._is_fixed(op.guard.reg, thread, forms, where):
                raise NotAlike("a predicate depends on what differs between CTAs", op.span)
            where = replace(where, conditional=True)
        for name, _ in written_registers(op):
            key = thread.number, name
            self.written[key] = self.written.get(key, 0) + 1
        if not isinstance(inner, FOLLOWED) or (op is not inner and not isinstance(inner, AWAITED)):
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        if isinstance(inner, INSIDE_ONE_CTA):
            self._inside(op, inner, thread, forms, where)
        elif isinstance(inner, ops.Load | ops.Store | ops.Atomic):
            self._access(op, inner, thread, forms, where)
        elif isinstance(inner, ops.Alu):
            self._compute(inner, thread, forms, where)
        else:
            if is_wide_fence(inner) and not where.conditional:
                self.fences.add((thread.number, -self.left))
            restricted = isinstance(inner, ops.Fence) and inner.restrict not in (None, "mbarrier_init")
            if restricted or where.looped or (isinstance(inner, ops.Barrier) and inner.instance is not None):
                raise NotAlike(f"'{op.text}' is not followed here", op.span)
            if not all(self._is_fixed(e, thread, forms, where) for _, e in expressions(inner)):
                raise NotAlike("an operand depends on what differs between CTAs", op.span)
        self._keep_number(op, thread, forms, where)

    def _folded(self, expr: Expr, forms: LinearForms, where: Surroundings) -> Expr:
        found = forms.linear(expr, where.names)
        return expr if found is None or found.terms else Const(found.constant)

    def _vary(self, op: Op, thread: FamilyThread) -> None:
        """What an operation writes into registers varies."""
        self.varying.update((thread.number, name) for name, _ in written_registers(op))

    def _compute(self, op: ops.Alu, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        if op.op in SCHEDULED:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        if not where.looped:
            if all(self._is_fixed(e, thread, forms, where) for e in op.srcs):
                return
            head, _, mode = op.op.partition(".")
            test = COMPARISONS.get(mode)
            found = self.drawn.get(thread.number)
            if head == "setp" and test and found and op.type in COUNTED_TYPES and type_size(op.type) == found[2]:
                one, other = op.srcs
                if self._is_last(Binary(test, one, other), thread, forms, where)[0] is not None:
                    return
        self._vary(op, thread)

    def _access(
        self,
        op: Op,
        inner: ops.Load | ops.Store | ops.Atomic,
        thread: FamilyThread,
        forms: LinearForms,
        where: Surroundings,
    ) -> None:
        rows = isinstance(inner, ops.Load | ops.Store) and inner.matrix_rows
        if inner.proxy != "generic" or inner.multimem is not None or rows:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        name, offset = self._place(inner.address, op.span, thread, forms, where)
        size = type_size(inner.type)
        match inner:
            case ops.Load():
                size *= len(inner.dsts)
            case ops.Store():
                size *= len(inner.srcs)
        space = self.objects[name].space
        if space == "shared":
            self._access_shared(op, inner, size, thread, forms, where)
            return
        if offset is None:
            raise NotAlike("an address is not linear in the number of a CTA", op.span)
        if isinstance(inner, ops.Load) and inner.non_coherent:
            self.non_coherent.setdefault(name, op.span)
        weak = not isinstance(inner, ops.Atomic) and inner.sem == "weak" and op is inner
        if weak and (space != "global" or name not in self.counters):
            check_aligned(offset, size, op.span)
            self._vary(inner, thread)
            writes = isinstance(inner, ops.Store)
            self.accesses.append(self._row(name, offset, size, thread, forms, where, op, writes=writes))
            return
        if self._takes_turns(op, inner, name, offset, size, thread, forms, where):
            return
        if isinstance(inner, ops.Atomic) and is_reduction(inner) and not where.looped and space == "global":
            self._reduce(Reduction(
                self._row(name, offset, size, thread, forms, where, op, reduces=True), size, "generic", inner.scope
            ))  # fmt: skip
            if offset.terms:
                return
        if where.looped or offset.terms or space != "global":
            raise NotAlike("strong accesses of words that differ between CTAs, or in a loop over them", op.span)
        shared = SharedAccess(thread, op, (name, offset.constant), size, where, forms)
        self.strong.append(shared)
        if name in self.counters or adds_one(shared):
            self._vary(inner, thread)
            if adds_one(shared) and isinstance(inner, ops.Atomic) and inner.dst is not None:
                last = Linear(initial_value(self.objects, shared.word, size) - 1 - self.first).plus(self.end)
                self.drawn[thread.number] = inner.dst.name, last, size

    def _row(
        self, name: str, offset: Linear, size: int, thread: FamilyThread, forms: LinearForms, where: Surroundings,
        op: Op, *, writes: bool = True, asynchronous: bool = False, reduces: bool = False,
    ) -> FamilyAccess:  # fmt: skip
        return FamilyAccess(
            thread=thread.number, cta=thread.cta, object=name, offset=offset, size=size, writes=writes,
            variables=forms.variables_of(offset, *where.loops), asynchronous=asynchronous, reduces=reduces,
            span=op.span,
        )  # fmt: skip

    def _reduce(self, made: Reduction) -> None:
        if made.access.object in self.counters:
            if made.access.offset.terms or made.access.asynchronous:
                raise NotAlike("the counter is reduced into, too", made.access.span)
            return  # said of all strong accesses of the counter
        check_aligned(made.access.offset, made.access.size, made.access.span)
        self.reductions.append(made)

    def _inside(self, op: Op, inner: Op, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        """An operation of which other CTAs notice at most the accesses of global memory."""
        if where.looped:
            raise NotAlike(f"'{op.text}' is not followed in a loop over the CTAs", op.span)
        check_inside(inner)
        addresses: list[Expr] = []
        if isinstance(inner, ops.CpAsync | ops.BulkCopy):
            there, here, writes = sides_of(inner)
            addresses = [here, there.address]
            size = self._copy(op, there, thread, forms, where)
            objects = self._objects_at(here, size, op, thread, forms, where)
            if writes:
                self.varying_objects |= objects
        if (bar := mbarrier_of(inner)) is not None:
            addresses.append(bar)
            self._objects_at(bar, MBARRIER, op, thread, forms, where)
        if not all(
            any(e is a for a in addresses) or self._is_fixed(e, thread, forms, where) for _, e in expressions(inner)
        ):
            raise NotAlike("an operand depends on what differs between CTAs", op.span)

    def _objects_at(
        self, address: Expr, size: int, op: Op, thread: FamilyThread, forms: LinearForms, where: Surroundings
    ) -> set[str]:
        """The objects in shared memory that so many bytes may be of. Raises ``NotAlike`` if they are elsewhere."""
        name, offset = self._place(address, op.span, thread, forms, where)
        if self.objects[name].space != "shared":
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        return objects_at(name, offset, size, self.objects)

    def _copy(self, op: Op, side: GlobalSide, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> int:
        """What a copy accesses in global memory; how many bytes."""
        name, offset = self._place(side.address, op.span, thread, forms, where)
        size, aligned = (
            Linear(e) if isinstance(e, int) else forms.linear(e, where.names) for e in (side.size, side.aligned)
        )
        if offset is None or size is None or aligned is None or size.terms or size.constant <= 0:
            raise NotAlike("the address of a copy is not linear, or its size is not fixed", op.span)
        if self.objects[name].space != "global" or name in self.counters:
            raise NotAlike(f"'{op.text}' is not followed", op.span)
        check_aligned(offset, aligned.constant, op.span)
        row = self._row(
            name, offset, size.constant, thread, forms, where, op, writes=side.writes, asynchronous=True,
            reduces=side.reduces > 0,
        )  # fmt: skip
        if side.reduces:
            self._reduce(Reduction(row, side.reduces, side.proxy, side.scope or "gpu"))
        else:
            self.accesses.append(row)
        return size.constant

    def _takes_turns(
        self, op: Op, inner: Op, name: str, offset: Linear, size: int, thread: FamilyThread, forms: LinearForms,
        where: Surroundings,
    ) -> bool:  # fmt: skip
        """Keep a wait for another CTA that is alike, or a signal for one."""
        alike = thread.cta is None and not where.looped and name not in self.counters
        if not alike or self.objects[name].space != "global":
            return False
        if isinstance(inner, ops.Store):
            value = inner.srcs[0]
        elif isinstance(op, ops.Await) and isinstance(inner, ops.Load) and op.compare is not None:
            value = op.compare[1]
            if not offset.terms and self._is_fixed(value, thread, forms, where):
                return False  # a wait for a flag
        else:
            return False
        row = self._row(name, offset, size, thread, forms, where, op)
        number = self._number(value, thread, forms, where)
        self.turn_steps.append(TurnStep(thread, op, row, number, -self.left, where.conditional))
        self._vary(op, thread)
        return True

    def _number(self, expr: Expr, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> Linear | None:
        """A value that is linear in the number of a CTA, or in its ticket."""
        match expr:
            case Reg(name):
                return self.numbers.get((thread.number, name))
            case Binary("+" | "-" as op, left, right):
                one, other = (self._number(e, thread, forms, where) for e in (left, right))
                return None if one is None or other is None else one.plus(other, 1 if op == "+" else -1)
        return forms.linear(expr, where.names)

    def _keep_number(self, op: Op, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> None:
        """What a register holds behind an operation, if it is linear in the number of the CTA."""
        found: Linear | None = None
        match op:
            case ops.Alu(op="mov", srcs=(value,)) if op.type in COUNTED_TYPES:
                found = self._number(value, thread, forms, where)
            case ops.Alu(op="add" | "sub", srcs=(one, other)) if op.type in COUNTED_TYPES:
                found = self._number(Binary("+" if op.op == "add" else "-", one, other), thread, forms, where)
            case ops.Atomic(dst=Reg(name)) if self.drawn.get(thread.number, ("",))[0] == name:
                found = variable(TICKET)
        for name, _ in written_registers(op):
            self.numbers.pop((thread.number, name), None)
            if found is not None and not where.conditional and not where.looped:
                self.numbers[thread.number, name] = found

    def _place(
        self, address: Expr, span: Span | None, thread: FamilyThread, forms: LinearForms, where: Surroundings
    ) -> tuple[str, Linear | None]:
        def fixed(expr: Expr) -> bool:
            return self._is_fixed(expr, thread, forms, where)

        return find_place(address, self.objects, forms, where.names, fixed, span)

    def _access_shared(
        self,
        op: Op,
        inner: ops.Load | ops.Store | ops.Atomic,
        size: int,
        thread: FamilyThread,
        forms: LinearForms,
        where: Surroundings,
    ) -> None:
        if where.looped:
            raise NotAlike("shared memory is accessed in a loop over the CTAs", op.span)
        objects = self._objects_at(inner.address, size, op, thread, forms, where)
        values = () if isinstance(inner, ops.Load) else inner.srcs
        if not all(self._is_fixed(e, thread, forms, where) for e in values):
            self.varying_objects |= objects
        varies = not self.varying_objects.isdisjoint(objects)
        if isinstance(op, ops.Await) and (varies or not self._waits_for_fixed(op, thread, forms, where)):
            raise NotAlike("a wait depends on what differs between CTAs", op.span)
        if varies:
            self._vary(inner, thread)

    def _waits_for_fixed(self, op: ops.Await, thread: FamilyThread, forms: LinearForms, where: Surroundings) -> bool:
        return op.compare is not None and not op.followed and self._is_fixed(op.compare[1], thread, forms, where)

    def conclude(self) -> tuple[SharedWords, FamilyTurns | None]:
        """What the CTAs share, and how they take turns. Raises ``NotAlike``."""
        for access in (*self.accesses, *(r.access for r in self.reductions)):
            if access.writes and access.object in self.non_coherent:
                raise NotAlike(f"{access.object} is written", self.non_coherent[access.object])
        reader = WordsReader(self.objects, self.first, self.end, self.varying, self.written)
        words = reader.read(self.strong, self.accesses, self.reductions)
        if not self.turn_steps:
            return words, None
        counter, span = words.counter, self.turn_steps[-1].op.span
        others = {s.word[0] for s in self.strong} | {access.object for access in words.accesses}
        turns = read_turns(
            self.turn_steps, self.fences, others, self.objects, self.first, None if counter is None else counter.first
        )
        if counter is not None and (not turns.draws or counter.waits or self.asked):
            raise NotAlike("CTAs both take turns and count themselves", span)
        if turns.draws and any(depends_on_number(access) for access in words.accesses):
            raise NotAlike("CTAs draw tickets, and access places by their numbers", span)
        return words, turns
