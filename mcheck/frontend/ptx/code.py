"""The functions that an entry can reach, as one array of code, with the registers that must be evaluated.

A register is needed if control, an address or an operand of synchronisation can depend on it; instructions that compute
only other registers are not executed at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.module import operand_registers
from mcheck.isa.kinds import COLLECTIVES, FRAGMENTS, MAP_EDITS, REDUCTIONS, STORES, TMEM, WARPGROUP, Kind
from mcheck.isa.opcode import GENERIC


@dataclass(frozen=True, slots=True)
class Unit:
    """A function in the code: its first place, and the first row of its registers."""

    function: ptx.Function
    start: int
    frame: int


@dataclass(frozen=True, slots=True)
class Code:
    """All reachable functions, the entries first. ``wanted`` are the rows of the needed registers. ``moved`` says
    whether control, or a tensor map that the kernel edits, depends on stored values, ``exact`` whether the engine has
    to know stored values (for maps, and for words whose atomics decide something), ``named`` whether stored values need
    names, ``counts`` whether control or an address depends on the result of an atomic.
    """

    units: tuple[Unit, ...]
    rows: int
    needed_rows: frozenset[int]
    stores_decide: bool
    stores_needed: bool = False
    stores_named: bool = False
    atomics_decide: bool = False

    def unit(self, name: str) -> Unit | None:
        """The unit of a function."""
        return next((u for u in self.units if u.function.name == name), None)


def collect_code(module: ptx.Module, *entries: str, named: bool = False) -> Code:
    """Collect the code that entries can reach. With ``named`` all stored data is needed."""
    names, todo = [*entries], [*entries]
    while todo:
        for name in _callees(module, module.functions[todo.pop()]):
            if name not in names:
                names.append(name)
                todo.append(name)
    units, start, frame = [], 0, 0
    for name in names:
        function = module.functions[name]
        units.append(Unit(function, start, frame))
        start += len(function.body) + 1
        frame += len(function.registers)
    maps = any(s.kind in MAP_EDITS for u in units for s in u.function.body)
    wanted, moved = _needed_rows(module, units, maps=maps, named=named)
    exact = maps or (moved and any(_may_be_awaited(s) for u in units for s in u.function.body))
    asked = (s for u in units for s in u.function.body if any(u.frame + r.index in wanted for r in s.defs))
    counts = any(s.kind is Kind.ATOMIC for s in asked)
    return Code(tuple(units), frame, wanted, moved, exact, named, counts)


def _may_be_awaited(statement: ptx.Statement) -> bool:
    """Whether other threads may wait for the stored value: an atomic, or a load that may be a poll."""
    return statement.kind is Kind.ATOMIC or (statement.kind is Kind.LOAD and statement.opcode.is_strong)


def resolve_function(module: ptx.Module, name: str) -> ptx.Function | None:
    """The function of a name, if it has a body."""
    found = module.functions.get(module.aliases.get(name, name))
    return found if found is not None and found.defined else None


def _callees(module: ptx.Module, function: ptx.Function) -> Iterator[str]:
    indirect = False
    for statement in function.body:
        if statement.kind is Kind.CALL:
            for operand in statement.operands:
                if isinstance(operand, ptx.Symbol) and resolve_function(module, operand.name) is not None:
                    yield module.aliases.get(operand.name, operand.name)
                indirect |= isinstance(operand, ptx.Register)
    if indirect:
        yield from (f.name for f in module.functions.values() if f.defined and not f.entry)


# --- registers ----------------------------------------------------------------------------------------------

EXCHANGES = COLLECTIVES - {Kind.ELECTION}
ACCESSES = REDUCTIONS | {Kind.LOAD, Kind.ATOMIC, Kind.MULTIMEM}
MATRICES = TMEM | WARPGROUP | FRAGMENTS | {Kind.MATRIX_LOAD, Kind.MATRIX_STORE}


def branch_body(unit: Unit, k: int) -> tuple[ptx.Statement, ...]:
    """The statements that the branch ``k`` of a function skips, if they are only arithmetic, with an ``else`` or not,
    and nested branches of that kind: its guard decides nothing unless something depends on those results.
    """
    body, labels = unit.function.body, unit.function.labels
    if not _is_branch(body[k]):
        return ()
    end, at = k + 1, k
    over: list[ptx.Statement] = []
    while at == k or at < end:
        statement = body[at]
        if _is_branch(statement):
            target = labels[statement.operands[0].name]  # type: ignore[union-attr]
            if target <= at:
                return ()
            end = max(end, target)
        elif not statement.only_computes:
            return ()
        else:
            over.append(statement)
        at += 1
    return tuple(over)


def _is_branch(statement: ptx.Statement) -> bool:
    return statement.kind is Kind.BRANCH and isinstance(statement.operands[0], ptx.Label)


def _needed_rows(module: ptx.Module, units: list[Unit], *, maps: bool, named: bool) -> tuple[frozenset[int], bool]:
    wanted: set[int] = set()
    flows: list[tuple[set[int], set[int]]] = []
    loads: list[set[int]] = []
    data: set[int] = set()
    idle: list[tuple[set[int], set[int]]] = []
    reached = _is_local_stored_generically(units)
    for unit in units:
        for k, statement in enumerate(unit.function.body):
            over = branch_body(unit, k)
            if over:
                computed = {unit.frame + r.index for s in over for r in s.defs}
                idle.append((computed, {unit.frame + r.index for r in statement.uses}))
            else:
                _add_flow(module, units, unit, statement, (wanted, flows, loads, data))
                if reached and statement.kind is Kind.LOAD and "local" in statement.opcode.spaces:
                    loads.append({unit.frame + r.index for r in statement.defs})
    moved = named
    wanted |= data if named else set()
    while True:
        _close_over_flow(wanted, flows)
        decide = {r for computed, guard in idle if computed & wanted for r in guard} - wanted
        if decide:
            wanted |= decide
            continue
        if moved or not (maps or any(found & wanted for found in loads)):
            return frozenset(wanted), moved
        moved = True
        wanted |= data


def _close_over_flow(wanted: set[int], flows: list[tuple[set[int], set[int]]]) -> None:
    changed = True
    while changed:
        changed = False
        for defined, used in reversed(flows):
            if defined & wanted and not used <= wanted:
                wanted |= used
                changed = True


def _add_flow(
    module: ptx.Module, units: list[Unit], unit: Unit, statement: ptx.Statement,
    into: tuple[set[int], list[tuple[set[int], set[int]]], list[set[int]], set[int]],
) -> None:  # fmt: skip
    """Add the data flow of a statement: needed registers, flows into others, loaded ones, stored ones."""
    wanted, flows, loads, data = into

    def rows(found: Iterable[ptx.Register]) -> set[int]:
        return {unit.frame + r.index for r in found}

    kind, defined = statement.kind, rows(statement.defs)
    if statement.guard is not None and not statement.only_computes:
        wanted.add(unit.frame + statement.guard.register.index)
    if statement.only_computes:
        flows.append((defined, rows(statement.uses)))
    elif kind in EXCHANGES:
        flows.append((defined, rows(statement.uses)))
        wanted |= rows(r for o in statement.operands[-1:] for r in operand_registers(o))
    elif kind in STORES and statement.opcode.space in ("param", "local"):
        wanted |= rows(r for operand in statement.operands for r in operand_registers(operand))
    elif kind in STORES - {Kind.FILL}:
        for operand in statement.operands:
            (wanted if isinstance(operand, ptx.Address) else data).update(rows(operand_registers(operand)))
    elif kind in ACCESSES:
        addresses = [o for o in statement.operands if isinstance(o, ptx.Address)]
        wanted |= {r for o in addresses for r in rows(operand_registers(o))}
        if not _reads_own_memory(statement):
            loads.append(defined)
        data |= rows(statement.uses)
    elif kind is Kind.CALL:
        for defined, used in _argument_flow(module, units, unit, statement):
            flows.append((defined, used))
        wanted |= rows(r for o in statement.operands if isinstance(o, ptx.Register) for r in operand_registers(o))
    elif kind in MATRICES:
        wanted |= rows(r for o in statement.operands if not isinstance(o, ptx.Vector) for r in operand_registers(o))
        if kind is Kind.MATRIX_STORE:
            data |= rows(statement.uses)
        elif defined:
            flows.append((defined, rows(statement.uses)))
    else:
        wanted |= rows(statement.uses)


def _reads_own_memory(statement: ptx.Statement) -> bool:
    """Whether a load reads memory of the lane's own or given by the launch."""
    return statement.opcode.space in ("param", "local", "const")


def _is_local_stored_generically(units: list[Unit]) -> bool:
    """Whether a store by a generic address may be to local memory."""
    opcodes = [s.opcode for u in units for s in u.function.body]
    converted = any(o.kind is Kind.ADDRESS_CONVERSION and o.space == "local" and not o.has("to") for o in opcodes)
    return converted and any(o.kind in STORES and o.space == GENERIC for o in opcodes)


def _argument_flow(
    module: ptx.Module, units: list[Unit], unit: Unit, statement: ptx.Statement
) -> Iterator[tuple[set[int], set[int]]]:
    """The flow of register arguments into formal parameters and back."""
    for result, callee, given in possible_callees(module, units, statement):
        names = {r.name: callee.frame + r.index for r in callee.function.registers}
        for formal, actual in zip(callee.function.parameters, given, strict=False):
            if formal.name in names and isinstance(actual, ptx.Register):
                yield {names[formal.name]}, {unit.frame + actual.index}
        for formal, actual in zip(callee.function.returns, result, strict=False):
            if formal.name in names and isinstance(actual, ptx.Register):
                yield {unit.frame + actual.index}, {names[formal.name]}


def possible_callees(
    module: ptx.Module, units: Iterable[Unit], statement: ptx.Statement
) -> list[tuple[tuple[ptx.Operand, ...], Unit, tuple[ptx.Operand, ...]]]:
    """The functions that a call may enter, each with results and arguments."""
    result, target, given = call_parts(statement)
    by_name: Mapping[str, Unit] = {u.function.name: u for u in units}
    if isinstance(target, ptx.Symbol):
        found = by_name.get(module.aliases.get(target.name, target.name))
        return [] if found is None else [(result, found, given)]
    return [(result, u, given) for u in by_name.values() if not u.function.entry]


def call_parts(
    statement: ptx.Statement,
) -> tuple[tuple[ptx.Operand, ...], ptx.Operand, tuple[ptx.Operand, ...]]:
    """Results, callee and arguments of a call."""
    operands = list(statement.operands)
    result: tuple[ptx.Operand, ...] = ()
    if isinstance(operands[0], ptx.Arguments):
        result = operands.pop(0).items  # type: ignore[union-attr]
    if not operands:
        raise InputError("a call without a function", statement.span)
    given = operands[1].items if len(operands) > 1 and isinstance(operands[1], ptx.Arguments) else ()
    return result, operands[0], given
