"""A kernel that is given the numbers that it draws: as many rounds as a parameter says with one and the same tile, and
then the end of the tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import collect_code
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Launch
from mcheck.frontend.ptx.module import Module, Parameter, Register
from mcheck.isa.opcode import read_opcode
from mcheck.simt.grid.draws.drawn_numbers import Draws
from mcheck.simt.grid.footprints.coordinate_taint import tainted_rows

ROUNDS = "mcheck_rounds"
"""The parameter that says how many tiles are drawn."""
SIZE = 4


@dataclass(frozen=True, slots=True)
class GivenDraws:
    """The kernel; ``draws`` are the statements that give a number, by their indices in its code."""

    module: Module
    draws: frozenset[int]


def give_draws(module: Module, entry: str, draws: Draws, tile: int, end: int) -> GivenDraws:
    """The kernel with selections in the places of the atomics by which it draws: of ``tile`` in each round, and of
    ``end`` behind the last one. Each lane counts its rounds.
    """
    function = module.functions[entry]
    first = len(function.registers)
    rounds, count = Register("%mcheck_rounds", "u32", first), Register("%mcheck_count", "u32", first + 1)
    more = Register("%mcheck_more", "pred", first + 2)
    like = function.body[min(draws.statements)]

    def make(statement: ptx.Statement, *parts: str, operands: Sequence[ptx.Operand]) -> ptx.Statement:
        return replace(statement, opcode=read_opcode(parts), operands=tuple(operands))

    def select(statement: ptx.Statement) -> Iterator[ptx.Statement]:
        (target,) = statement.defs
        kind = f"b{type_bits(statement.opcode.type)}"
        given: list[ptx.Operand] = [target, ptx.Immediate(tile), ptx.Immediate(end), more]
        yield make(statement, "setp", "lt", "u32", operands=[more, count, rounds])
        yield make(statement, "add", "u32", operands=[count, count, ptx.Immediate(1)])
        yield make(statement, "selp", kind, operands=given)

    bare = replace(like, guard=None)
    address = ptx.Address(ptx.Symbol(ROUNDS))
    body = [
        make(bare, "ld", "param", "u32", operands=[rounds, address]),
        make(bare, "mov", "u32", operands=[count, ptx.Immediate(0)]),
    ]
    parts = [list(select(s)) if k in draws.statements else [s] for k, s in enumerate(function.body)]
    starts = list(accumulate(map(len, parts), initial=len(body)))
    changed = replace(
        function,
        registers=(*function.registers, rounds, count, more),
        parameters=(
            *function.parameters,
            Parameter(name=ROUNDS, type="u32", space="param", align=SIZE, size=SIZE, span=function.span),
        ),
        labels={name: starts[at] for name, at in function.labels.items()},
        body=(*body, *(s for part in parts for s in part)),
    )
    given = replace(module, functions={**module.functions, entry: changed})
    return GivenDraws(given, frozenset(starts[k + 1] - 1 for k in draws.statements))


def with_any_rounds(given: GivenDraws, launch: Launch) -> Launch:
    """The launch of such a kernel with any number of rounds; the tile stands for others."""
    code = collect_code(given.module, launch.entry)
    unit = next(u for u in code.units if u.function.name == launch.entry)
    drawn = frozenset(unit.frame + r.index for k in given.draws for r in unit.function.body[k].defs)
    any_number = AnyNumber(tainted_rows(given.module, code, drawn))
    number = Argument(ROUNDS, SIZE, bytes(SIZE), (), ((0, any_number),))
    return replace(launch, arguments=(*launch.arguments, number))


def with_rounds(launch: Launch, rounds: int) -> Launch:
    """The launch of such a kernel with a number of rounds."""
    data = rounds.to_bytes(SIZE, "little")
    return replace(launch, arguments=(*launch.arguments, Argument(ROUNDS, SIZE, data, ((0, SIZE),))))
