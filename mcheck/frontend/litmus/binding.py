"""Binding, the last step of both forms: threads get their code, names their addresses, the condition its terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.bound_condition import ConditionBinder
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.conditions import Tail
from mcheck.frontend.litmus.declarations import make_location
from mcheck.frontend.litmus.divergent_aligned import is_aligned_instruction, mark_divergent
from mcheck.frontend.litmus.error_recovery import Mistakes
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.placement import Grid, Placement, enumerate_threads
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statements import Body, For, If, Statement, Step
from mcheck.frontend.litmus.tensor_memory import columns_of, uses_tensor_core
from mcheck.frontend.litmus.thread_values import Addresses, special_registers
from mcheck.frontend.litmus.unroll import Budget, Counting, Unroller
from mcheck.frontend.litmus.warps import merge_warp_copies
from mcheck.ir.address_map import lay_out, shared_size
from mcheck.ir.condition import Condition, Truth
from mcheck.ir.def_use import read_registers, registers_of, written_registers
from mcheck.ir.expr import Const, Expr, Name, Special
from mcheck.ir.memory import SHARED_WINDOW, TENSOR_COLUMNS, MemoryMap
from mcheck.ir.multimem import split_threads
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.resolve import Undefined, fold_expression


@dataclass(frozen=True, slots=True)
class Role:
    """A role (or a column of the table): its code, and the types that its ``.reg`` lines give to registers."""

    name: str
    placement: Placement
    body: Body
    registers: dict[str, str]


def bind_program(
    header: Header, scope: Scope, initial: Initial, roles: Sequence[Role], tail: Tail, dialect: bool,
    counting: Counting | None = None, known: Mapping[str, int] | None = None,
) -> Program:  # fmt: skip
    """The program that the parts of a file make; ``known`` are constants that are names in them."""
    with scope.mistakes:
        return _bound(header, scope, initial, roles, tail, dialect, counting, known)


def _bound(
    header: Header, scope: Scope, initial: Initial, roles: Sequence[Role], tail: Tail, dialect: bool,
    counting: Counting | None, known: Mapping[str, int] | None,
) -> Program:  # fmt: skip
    grid = enumerate_threads([role.placement for role in roles])
    if scope.implicit:
        for name, span in scope.implicit.items():
            if name not in scope.objects:
                scope.objects[name] = make_location(name, 0, span)
    memory = _memory(scope, initial, grid)
    addresses = Addresses(memory, grid.ctas)
    threads = _threads(roles, grid, addresses, initial, scope.mistakes, counting, known)
    if any(uses_tensor_core(op) for role in roles for op in _operations(role.body)):
        from mcheck.frontend.litmus.tensor_faults import find_tensor_faults  # few tests need it

        threads = find_tensor_faults(threads, memory)
    threads = split_threads(threads, memory)
    scope.mistakes.raise_all()
    texts = {
        role.name: frozenset(name for op in _operations(role.body) for name, _ in written_registers(op))
        for role in roles
    }
    binder = ConditionBinder(scope, memory, addresses, threads, grid, dialect, texts)
    condition = Condition(
        kind=tail.kind,
        formula=binder.formula(tail.tree) if tail.tree is not None else Truth(),
        text=tail.text,
        filter=binder.formula(tail.filter) if tail.filter is not None else Truth(),
        locations=tuple(term for word in tail.locations for term in binder.listed(word)),
        notation=tuple(binder.notation.items()),
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
    columns = columns_of(objects)
    if columns > TENSOR_COLUMNS:
        span = next(item.span for item in objects if item.space == "tensor")
        raise problem("LIT026", span, what="the columns of tensor memory are", size=columns, limit=TENSOR_COLUMNS)
    memory = lay_out(objects, grid.ctas, apart=scope.parameter is not None)
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
    return lay_out(tuple(finished.values()), grid.ctas, apart=scope.parameter is not None)


def _address(expr: Expr, span: Span | None, addresses: Addresses, what: str) -> int:
    """An address that is the same in every CTA."""

    def lookup(item: Name | Special) -> Expr:
        if isinstance(item, Name) and item.rank is None and not addresses.is_shared(item.name) and addresses.ctas:
            return addresses.resolve(item, addresses.ctas[0], partial(fold_expression, lookup=lookup))
        raise problem("LIT016", span, what=what, expected="a number or the address of a global variable")

    try:
        value = fold_expression(expr, lookup)
    except Undefined as error:
        raise problem("LIT017", span, reason=str(error)) from None
    if not isinstance(value, Const):
        raise problem("LIT016", span, what=what, expected="a number or the address of a global variable")
    return value.value


# --- threads ------------------------------------------------------------------------------------------


MOST_ALIKE = 8
"""The number of threads of a role with different control flow that the next thread is compared with."""


def _threads(
    roles: Sequence[Role], grid: Grid, addresses: Addresses, initial: Initial, mistakes: Mistakes,
    counting: Counting | None, known: Mapping[str, int] | None,
) -> tuple[Thread, ...]:  # fmt: skip
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
        written_to = initialised.get(role.name, set())
        missing: dict[str, Span | None] = {}
        operations = _operations(role.body)
        for op in operations:
            for name, kind in written_registers(op):
                types.setdefault(name, kind)
                written_to.add(name)
            for name, kind in read_registers(op):
                types.setdefault(name, kind)
                missing.setdefault(name, op.span)
        for choice in _statements(role.body):
            if isinstance(choice, If):
                for name in registers_of(choice.condition):
                    missing.setdefault(name, choice.span)
        for name, span in missing.items():
            if name not in written_to:
                initial.warnings.append((f"register {name} of {role.name} is neither written nor initialised", span))
        alike: list[Unroller] = []
        for number, place in enumerate(places):
            name = f"{role.name}[{number}]" if many else role.name
            unroller = Unroller(place, name, special_registers(place, grid), addresses, budget, share, counting, known)
            try:
                if number == 0:
                    unroller.require(role.body, len(places))
                if not any(map(unroller.follow, alike)):
                    unroller.run(role.body)
                    alike = [unroller, *alike][:MOST_ALIKE]
            except InputError as error:
                if error.code == "LIT057":  # there is no room for the other roles either
                    raise
                mistakes.add(error)
                break
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
                    iterations=unroller.iterations(),
                    rounds=unroller.rounds,
                )
            )
    threads = tuple(found)
    if any(is_aligned_instruction(op) for role in roles for op in _operations(role.body)):
        threads = merge_warp_copies(mark_divergent(threads))
    return threads


def _statements(statement: Statement) -> Iterator[Statement]:
    """A statement and all statements nested in it, in textual order."""
    yield statement
    match statement:
        case For():
            yield from _statements(statement.body)
        case If():
            yield from _statements(statement.then)
            yield from _statements(statement.otherwise)
        case Body():
            for step in statement.steps:
                yield from _statements(step)


def _operations(body: Body) -> list[Op]:
    return [s.op for s in _statements(body) if isinstance(s, Step)]


def _register_inits(
    roles: Sequence[Role], grid: Grid, initial: Initial, addresses: Addresses
) -> dict[tuple[str, int], dict[str, int]]:
    found: dict[tuple[str, int], dict[str, int]] = {}
    places = {role.name: threads for role, threads in zip(roles, grid.threads, strict=True)}
    for item in initial.registers:
        threads = places.get(item.thread)
        if threads is None:
            raise problem("LIT032", item.span, name=item.thread, hint=suggest(item.thread, places))
        if item.number is not None and not 0 <= item.number < len(threads):
            raise problem("LIT071", item.span, name=item.thread, count=len(threads), number=item.number)
        for number, place in enumerate(threads):
            if item.number in (None, number):
                unroller = Unroller(place, item.thread, special_registers(place, grid), addresses, Budget(), False)
                value = unroller.constant(item.value, item.span, "an initial value")
                found.setdefault((item.thread, number), {})[item.register] = value
    return found
