"""The last step of both containers: threads get their code, names their addresses, the condition its terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcheck.errors import Span
from mcheck.program.condition import And, Compare, Condition, ConstTerm, Formula, MemTerm, Not, Or, RegTerm, Term, Truth
from mcheck.program.expr import Const, Expr, Name, Special
from mcheck.program.layout import lay_out, shared_size
from mcheck.program.memory import SHARED_WINDOW, Cta, MemObject, MemoryMap
from mcheck.program.ops import Op
from mcheck.program.program import Program, Thread
from mcheck.program.registers import read, written
from mcheck.program.resolve import Fold, Undefined, fold_with
from mcheck.syntax.codes import did_you_mean, problem
from mcheck.syntax.conditions import Atom, Group, MemWord, RegWord, Tail, Tree, Word
from mcheck.syntax.declarations import location
from mcheck.syntax.header import Header
from mcheck.syntax.initial import Initial
from mcheck.syntax.placement import Grid, Placement, enumerate_threads
from mcheck.syntax.scope import Scope
from mcheck.syntax.statements import Body, For, If, Statement, Step
from mcheck.syntax.unroll import Addresses, Budget, Unroller, specials
from mcheck.syntax.warps import together

MAX_LISTED = 256


@dataclass(frozen=True, slots=True)
class Role:
    """A role (or a column of the table): its code, and the types that its ``.reg`` lines give to registers."""

    name: str
    placement: Placement
    body: Body
    registers: dict[str, str]


def bind(header: Header, scope: Scope, initial: Initial, roles: Sequence[Role], tail: Tail, dialect: bool) -> Program:
    """The program that the parts of a file make."""
    grid = enumerate_threads([role.placement for role in roles])
    if scope.implicit:
        for name, span in scope.implicit.items():
            if name not in scope.objects:
                scope.objects[name] = location(name, 0, span)
    memory = _memory(scope, initial, grid)
    addresses = Addresses(memory, grid.ctas)
    threads = _threads(roles, grid, addresses, initial)
    binder = _Binder(scope, memory, addresses, threads, grid, dialect)
    formula = binder.formula(tail.tree) if tail.tree is not None else Truth()
    condition = Condition(
        kind=tail.kind,
        formula=formula,
        text=tail.text,
        filter=binder.formula(tail.filter) if tail.filter is not None else Truth(),
        locations=tuple(term for word in tail.locations for term in binder.listed(word)),
    )
    return Program(
        path=header.source.path,
        name=header.name,
        doc=header.doc,
        model=header.model,
        model_span=header.model_span,
        target=header.target,
        dialect=dialect,
        clustered=grid.clustered,
        memory=memory,
        threads=threads,
        condition=condition,
        expectation=tail.expectation,
        warnings=tuple({text: (text, span) for text, span in (*initial.warnings, *binder.warnings)}.values()),
        source=header.source.text,
    )


# --- memory -------------------------------------------------------------------------------------------


def _memory(scope: Scope, initial: Initial, grid: Grid) -> MemoryMap:
    objects = tuple(scope.objects.values())
    size = shared_size(objects)
    if size > SHARED_WINDOW:
        span = next(item.span for item in objects if item.space == "shared")
        raise problem("LIT026", span, what="the shared variables are", size=size, limit=SHARED_WINDOW)
    memory = lay_out(objects, grid.ctas)
    if not initial.pointers and not initial.maps:
        return memory
    addresses = Addresses(memory, grid.ctas)
    finished = dict(scope.objects)
    for name, pointers in initial.pointers.items():
        content = bytearray(finished[name].init or b"")
        for offset, size, kind, expr, span in pointers:
            value = _address(expr, span, addresses, "an initial value")
            if value >= 1 << 8 * size:
                raise problem("LIT029", span, value="an address", type="." + kind)
            content[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        finished[name] = replace(finished[name], init=bytes(content))
    for name, maps in initial.maps.items():
        specs = []
        for item in maps:
            assert item.address is not None
            address = _address(item.address, item.address_span or item.span, addresses, "global_address")
            place = memory.find(address)
            if place is None or place.object.space != "global":
                raise problem("LIT039", item.address_span, expected="the address of a .global variable")
            specs.append(item.spec(address))
        finished[name] = replace(finished[name], tensor_map=tuple(specs))
    scope.objects.update(finished)
    return lay_out(tuple(finished.values()), grid.ctas)


def _address(expr: Expr, span: Span, addresses: Addresses, what: str) -> int:
    """An address that is the same in every CTA."""

    def lookup(item: Name | Special, fold: Fold) -> Expr:
        if isinstance(item, Name) and item.rank is None and not addresses.is_shared(item.name) and addresses.ctas:
            return addresses.of(item, addresses.ctas[0], fold)
        raise problem("LIT016", span, what=what, expected="a number or the address of a global variable")

    try:
        value = fold_with(lookup)(expr)
    except Undefined as error:
        raise problem("LIT017", span, reason=str(error)) from None
    if not isinstance(value, Const):
        raise problem("LIT016", span, what=what, expected="a number or the address of a global variable")
    return value.value


# --- threads ------------------------------------------------------------------------------------------


def _threads(roles: Sequence[Role], grid: Grid, addresses: Addresses, initial: Initial) -> tuple[Thread, ...]:
    budget = Budget()
    found: list[Thread] = []
    initialised: dict[str, set[str]] = {}
    for item in initial.registers:
        initialised.setdefault(item.thread, set()).add(item.register)
    inits = _register_inits(roles, grid, initial, addresses)
    for role, places in zip(roles, grid.threads, strict=True):
        many = len(places) > 1
        share = many or any(isinstance(step, For | If | Body) for step in role.body.steps)
        types = dict(role.registers)
        known = initialised.get(role.name, set())
        missing: dict[str, Span | None] = {}
        operations = _operations(role.body)
        for op in operations:
            for name, kind in written(op):
                types.setdefault(name, kind)
                known.add(name)
            for name, kind in read(op):
                types.setdefault(name, kind)
                missing.setdefault(name, op.span)
        for name, span in missing.items():
            if name not in known:
                initial.warnings.append((f"register {name} of {role.name} is neither written nor initialised", span))
        for number, place in enumerate(places):
            name = f"{role.name}[{number}]" if many else role.name
            unroller = Unroller(place, name, specials(place, grid), addresses, budget, share)
            unroller.run(role.body)
            found.append(
                Thread(
                    index=len(found),
                    role=role.name,
                    number=number,
                    name=name,
                    place=place,
                    code=tuple(unroller.code),
                    labels=unroller.labels,
                    init=inits.get((role.name, number), {}),
                    types=types,
                )
            )
    return together(tuple(found))


def _operations(body: Body) -> list[Op]:
    found: list[Op] = []

    def visit(statement: Statement) -> None:
        match statement:
            case Step():
                found.append(statement.op)
            case For():
                visit(statement.body)
            case If():
                visit(statement.then)
                visit(statement.otherwise)
            case Body():
                for step in statement.steps:
                    visit(step)
            case _:
                pass

    visit(body)
    return found


def _register_inits(
    roles: Sequence[Role], grid: Grid, initial: Initial, addresses: Addresses
) -> dict[tuple[str, int], dict[str, int]]:
    found: dict[tuple[str, int], dict[str, int]] = {}
    places = {role.name: threads for role, threads in zip(roles, grid.threads, strict=True)}
    for item in initial.registers:
        threads = places.get(item.thread)
        if threads is None:
            raise problem("LIT032", item.span, name=item.thread, hint=did_you_mean(item.thread, places))
        if item.number is not None and not 0 <= item.number < len(threads):
            raise problem("LIT071", item.span, name=item.thread, count=len(threads), number=item.number)
        for number, place in enumerate(threads):
            if item.number in (None, number):
                unroller = Unroller(place, item.thread, specials(place, grid), addresses, Budget(), False)
                value = unroller.constant(item.value, item.span, "an initial value")
                found.setdefault((item.thread, number), {})[item.register] = value
    return found


# --- the condition --------------------------------------------------------------------------------------


class _Binder:
    """Gives the words of conditions their threads and addresses."""

    def __init__(
        self, scope: Scope, memory: MemoryMap, addresses: Addresses, threads: tuple[Thread, ...], grid: Grid,
        dialect: bool,
    ) -> None:  # fmt: skip
        self._scope = scope
        self._memory = memory
        self._addresses = addresses
        self._grid = grid
        self._dialect = dialect
        self._by_role: dict[str, list[Thread]] = {}
        for thread in threads:
            self._by_role.setdefault(thread.role, []).append(thread)
        self._terms: dict[tuple[object, ...], Term] = {}
        self._written: dict[int, set[str]] = {}
        self.warnings: list[tuple[str, Span | None]] = []

    def formula(self, tree: Tree) -> Formula:
        if isinstance(tree, Atom):
            return Compare(tree.op, self.term(tree.left, left=True), self.term(tree.right, left=False))
        return self._group(tree)

    def _group(self, tree: Group) -> Formula:
        match tree.op:
            case "and":
                return And(tuple(self.formula(part) for part in tree.parts))
            case "or":
                return Or(tuple(self.formula(part) for part in tree.parts))
            case "not":
                return Not(self.formula(tree.parts[0]))
        return Truth(tree.op == "true")

    def term(self, word: Word, *, left: bool) -> Term:
        """The term of ``word``; a bare location on the right-hand side is its address."""
        match word:
            case Const():
                return ConstTerm(word.value)
            case RegWord():
                return self._register(word)
            case MemWord():
                if not left and not word.bracketed and not word.name.indices:
                    self._object(word)
                    cta = self._cta(word)
                    base = self._addresses.base(word.name.name, cta)
                    assert base is not None
                    return ConstTerm(base)
                return self._location(word)

    def listed(self, word: Word) -> list[Term]:
        """The terms of an entry of ``locations``; an array stands for all its elements."""
        if not isinstance(word, MemWord):
            return [self.term(word, left=True)]
        item = self._object(word)
        rest = item.dims[len(word.name.indices) :]
        count = 1
        for dim in rest:
            count *= dim
        if not rest or item.elem == "tensormap":
            return [self._location(word)]
        if count > MAX_LISTED:
            raise problem("LIT075", word.span, name=word.name.name, expected=f"at most {MAX_LISTED} elements")
        found: list[Term] = []
        for flat in range(count):
            indices: list[Expr] = []
            for dim in reversed(rest):
                indices.append(Const(flat % dim))
                flat //= dim
            name = replace(word.name, indices=(*word.name.indices, *reversed(indices)))
            found.append(self._location(MemWord(name, word.bracketed, word.span)))
        return found

    def _register(self, word: RegWord) -> Term:
        threads = self._by_role.get(word.role)
        if threads is None:
            there = ", ".join(list(self._by_role)[:8])
            hint = did_you_mean(word.role, self._by_role)
            raise problem("LIT070", word.span, name=word.role, expected=f"one of {there}", hint=hint)
        number = word.number or 0
        if not 0 <= number < len(threads):
            raise problem("LIT071", word.span, name=word.role, count=len(threads), number=number)
        thread = threads[number]
        key = (thread.index, word.reg)
        term = self._terms.get(key)
        if term is None:
            self._check_written(word, thread)
            index = "" if word.number is None else f"[{word.number}]"
            term = self._terms[key] = RegTerm(thread.index, word.reg, f"{word.role}{index}:{word.reg}")
        return term

    def _check_written(self, word: RegWord, thread: Thread) -> None:
        registers = self._written.get(thread.index)
        if registers is None:
            registers = {name for op in thread.code for name, _ in written(op)} | thread.init.keys()
            self._written[thread.index] = registers
        if word.reg in registers:
            return
        error = problem(
            "LIT073", word.span, reg=word.reg, thread=thread.name, expected="a register that the thread writes",
            hint=did_you_mean(word.reg, registers),
        )  # fmt: skip
        if not self._dialect:
            raise error
        self.warnings.append((error.message, word.span))

    def _object(self, word: MemWord) -> MemObject:
        name = word.name.name
        item = self._scope.objects.get(name)
        if item is None:
            hint = did_you_mean(name, self._scope.objects)
            if hint is None and name in self._by_role:
                hint = f"a register of {name} is {name}:r0"
            raise problem("LIT072", word.span, name=name, expected="a declared location", hint=hint)
        return item

    def _cta(self, word: MemWord) -> Cta:
        """The CTA whose object is meant: by rank in its cluster, without clusters by its number in the grid."""
        name = word.name.name
        ctas = self._grid.ctas
        if not self._addresses.is_shared(name):
            return ctas[0]
        if word.name.rank is None:
            if len(ctas) > 1:
                text = f"{name} exists in {len(ctas)} CTAs; {name}@0 is meant"
                self.warnings.append((text, word.span))
            return ctas[0]
        if not isinstance(word.name.rank, Const):
            raise problem("LIT016", word.span, what="a CTA rank in a condition")
        rank = word.name.rank.value
        for cta in ctas:
            if (cta.rank if self._grid.clustered else cta.cluster) == rank:
                return cta
        raise problem("LIT061", word.span, rank=rank)

    def _location(self, word: MemWord) -> Term:
        item = self._object(word)
        name = word.name
        cta = self._cta(word)
        base = self._addresses.base(name.name, cta)
        assert base is not None
        indices: list[int] = []
        for index in name.indices:
            if not isinstance(index, Const):
                raise problem("LIT016", word.span, what="an index in a condition")
            indices.append(index.value)
        dims = item.dims
        if not dims and indices == [0]:
            indices = []  # x[0] of a scalar, as the table dialect has it
        for value, dim in zip(indices, dims or (1,), strict=False):
            if not 0 <= value < dim:
                raise problem("LIT074", word.span, name=name.name, index=value, expected=f"0 to {dim - 1}")
        if len(indices) > len(dims):
            raise problem("LIT059", word.span, name=name.name, dims=len(dims), found=len(indices))
        if len(indices) < len(dims) or item.elem == "tensormap":
            element = name.name + "".join(f"[{index}]" for index in indices) + "[0]" * (len(dims) - len(indices))
            raise problem(
                "LIT075", word.span, name=name.name, expected="one element",
                hint=f"write {element}" if item.elem != "tensormap" else "a tensor map has no value to compare",
            )  # fmt: skip
        address = base
        for value, stride in zip(indices, self._addresses.strides.get(name.name, ()), strict=False):
            address += value * stride
        physical = self._memory.of(name.name, cta)
        assert physical is not None
        address += physical.physical - physical.base
        label = name.name + "".join(f"[{index}]" for index in indices)
        if isinstance(name.rank, Const):
            label += f"@{name.rank.value}"
        key = (item.name, address)
        return self._terms.setdefault(key, MemTerm(address, item.elem_size, item.elem, label))
