"""Waits for a value that a thread keeps in shared memory and loads again in each iteration.

Compilers do so behind inline assembly that may change memory: ``while (load(turn) != drawn) {}`` with a ``__shared__``
ticket. No other thread writes the value (``check_kept``), so each iteration loads the same one, and none of these loads
races: one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in
from mcheck.ir.memory import SHARED_BASE
from mcheck.ir.ops import performed_operation
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.execution.waits.polling_loops import LOOKAHEAD
from mcheck.simt.execution.waits.value_tests import AwaitedValue, find_tests
from mcheck.simt.execution.waits.value_waits import find_awaited
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.instructions.access_operands import to_generic

LARGEST = 16
"""Bytes of the largest access by an address."""
MOVED = ("b32", "u32", "s32", "b64", "u64", "s64")
PLAIN = ops.Load | ops.Store | ops.Atomic | ops.Barrier | ops.Fence


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that a lane keeps in shared memory."""

    lane: int
    address: int
    size: int


FindWait = Callable[[Cluster, int], "tuple[AwaitedValue, list[Kept]] | None"]
"""What a lane waits for at a load, and what it keeps for that."""


def find_kept_waits(k: Compiler, unit: Unit, at: int, size: int) -> FindWait | None:
    """How to find what lanes wait for at the load at ``at`` of a function, if they load something else from shared
    memory before the load is repeated.
    """
    body = unit.function.body
    loads = _loads_behind(unit.function, at)
    if not loads or not find_tests(unit.function, at):
        return None
    places = [(body[j].place, type_size(body[j].opcode.type)) for j in loads]
    fetches = [(k.fetch(unit, place), width) for place, width in places]
    tested = {o for t in find_tests(unit.function, at) for o in body[t].operands[1:]}
    others: dict[ptx.Operand, Fetch] = {o: k.fetch(unit, o) for o in (*tested, *body[at].operands[1:])}
    known: dict[tuple[int | None, ...], AwaitedValue | None] = {}

    def find(c: Cluster, lane: int) -> tuple[AwaitedValue, list[Kept]] | None:
        kept, held = list[Kept](), list[int]()
        for fetch, width in fetches:
            place, sure = _in_lane(fetch, c, lane)
            address = to_generic(np.array([place], np.uint64))
            value, unknown = c.store.load(address, width, np.array([lane]))
            if (sure | int(unknown[0])) & ~int(taint.ORDER):
                return None
            kept.append(Kept(lane, int(address[0]), width))
            held.append(int(value[0]))
        values: dict[ptx.Operand, int | None] = {}
        for operand, fetch in others.items():
            number, sure = _in_lane(fetch, c, lane)
            values[operand] = None if sure & ~int(taint.ORDER) else number
        values |= {body[j].operands[0]: value for j, value in zip(loads, held, strict=True)}
        key = (*values.values(), *held)
        if key not in known:
            wait = find_awaited(_with_values(unit.function, loads, held), at, values.get)
            known[key] = wait if wait is not None and type_size(wait.type) == size and wait.condition_only else None
        found = known[key]
        return None if found is None else (found, kept)

    return find


def _in_lane(fetch: Fetch, c: Cluster, lane: int) -> tuple[int, int]:
    """The value of an operand in a lane, and what is known of it."""
    value, known = fetch()
    shape = c.lanes.exists.shape
    return int(np.broadcast_to(value, shape)[lane]), int(np.broadcast_to(known, shape)[lane])


def _loads_behind(function: ptx.Function, at: int) -> list[int]:
    """The loads from shared memory between a load and the next branch; none if anything else has an effect there."""
    found: list[int] = []
    written = set(function.body[at].defs)
    for j in range(at + 1, min(at + LOOKAHEAD, len(function.body))):
        statement = function.body[j]
        if statement.kind is Kind.BRANCH:
            return found
        if statement.kind is Kind.LOAD:
            opcode = statement.opcode
            plain = statement.guard is None and opcode.space == "shared" and opcode.vector == 1
            plain = plain and opcode.type in MOVED and not opcode.is_strong
            moved = not written.isdisjoint(operand_registers(statement.place))
            if not plain or moved or not isinstance(statement.operands[0], ptx.Register):
                return []
            found.append(j)
        elif not statement.only_computes:
            return []
        written |= set(statement.defs)
    return []


def _with_values(function: ptx.Function, loads: list[int], held: list[int]) -> ptx.Function:
    """The function with the values that these loads return in their places."""
    body = list(function.body)
    for j, value in zip(loads, held, strict=True):
        statement = body[j]
        opcode = read_opcode(("mov", f"b{8 * type_size(statement.opcode.type)}"))
        body[j] = replace(statement, opcode=opcode, operands=(statement.operands[0], ptx.Immediate(value)))
    return replace(function, body=tuple(body))


def check_kept(program: Program, kept: list[Kept], width: int) -> None:
    """Check that no other thread writes what lanes keep. Raises ``NotReducible``."""
    spans = {(one.address, one.size): one.lane for one in kept}
    known: set[tuple[int, int]] = set()
    for thread in program.threads if kept else ():
        lane = thread.place.cta.number * width + WARP * thread.place.warp + thread.place.lane
        for op in thread.code:
            inner = performed_operation(op)
            if isinstance(inner, ops.Load) or (id(op), lane) in known:
                continue
            known.add((id(op), lane))
            numbers = [n for n in numbers_in(inner) if n >= SHARED_BASE]
            if numbers and not isinstance(inner, PLAIN):
                raise NotReducible("shared memory is written in a way that is not followed", op.span)
            for (address, size), owner in spans.items():
                if owner != lane and any(address - LARGEST < n < address + size for n in numbers):
                    raise NotReducible("another thread may write what is waited for", op.span)
