"""A kernel that is given the numbers that it draws: as many rounds as a parameter says with one and the same tile, or
each team of threads with one of its own, and then the end of the tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import collect_code
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Launch
from mcheck.frontend.ptx.module import Module, Parameter, Register
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.draws.drawn_numbers import Draws
from mcheck.simt.grid.draws.teams import Teams
from mcheck.simt.grid.footprints.coordinate_taint import tainted_rows

ROUNDS = "mcheck_rounds"
"""The parameter that says how many tiles are drawn."""
SIZE = 4


@dataclass(frozen=True, slots=True)
class GivenDraws:
    """The kernel; ``draws`` are the statements that give a number, by their indices in its code."""

    module: Module
    draws: frozenset[int]


@dataclass(frozen=True, slots=True)
class DrawnTile:
    """A cluster, by the x coordinate of its only CTA, that draws one tile or none (``None``)."""

    cluster: int
    tile: int | None


def give_draws(module: Module, entry: str, draws: Draws, tile: int, end: int, teams: Teams | None = None) -> GivenDraws:
    """The kernel with selections in the places of the atomics by which it draws: of ``tile`` in each round, and of
    ``end`` behind the last one. Each lane counts its rounds. With ``teams``, each has a tile of its own, from that on.
    """
    writer = _Writer(module.functions[entry], draws)
    rounds = writer.register("%mcheck_rounds", "u32")
    writer.write("ld", "param", "u32", operands=[rounds, ptx.Address(ptx.Symbol(ROUNDS))])
    number = Parameter(name=ROUNDS, type="u32", space="param", align=SIZE, size=SIZE, span=writer.function.span)
    own: ptx.Operand = ptx.Immediate(tile)
    if teams is not None and teams.count > 1:
        own = writer.team_number(teams)
        writer.write("add", "u32", operands=[own, own, ptx.Immediate(tile)])
        own = writer.widened(own)
    return writer.finish(module, rounds, own, end, number)


def give_tiles(
    module: Module, entry: str, draws: Draws, first: DrawnTile, second: DrawnTile, end: int, teams: Teams
) -> GivenDraws:
    """The same for two clusters, whose first teams draw these tiles."""
    writer = _Writer(module.functions[entry], draws)
    at, is_first = writer.register("%mcheck_cta", "u32"), writer.register("%mcheck_first", "pred")
    rounds, tile = writer.register("%mcheck_rounds", "u32"), writer.register("%mcheck_tile", writer.type)
    writer.write("mov", "u32", operands=[at, ptx.Special("ctaid.x")])
    writer.write("setp", "eq", "u32", operands=[is_first, at, ptx.Immediate(first.cluster)])
    numbers = [ptx.Immediate(int(one.tile is not None)) for one in (first, second)]
    writer.write("selp", "b32", operands=[rounds, *numbers, is_first])
    tiles = [ptx.Immediate(one.tile or 0) for one in (first, second)]
    writer.write("selp", f"b{type_bits(tile.type)}", operands=[tile, *tiles, is_first])
    if teams.count > 1:
        draw, team = writer.register("%mcheck_draws", "pred"), writer.team_number(teams)
        writer.write("setp", "eq", "u32", operands=[draw, team, ptx.Immediate(0)])
        writer.write("selp", "b32", operands=[rounds, rounds, ptx.Immediate(0), draw])
    return writer.finish(module, rounds, tile, end)


class _Writer:
    """Writes the kernel: instructions at its beginning, and those in the places of the atomics."""

    def __init__(self, function: ptx.Function, draws: Draws) -> None:
        self.function, self.draws = function, draws
        self.drawn = [function.body[k] for k in sorted(draws.statements)]
        self.made: list[Register] = []
        self.begin: list[ptx.Statement] = []

    def register(self, name: str, kind: str) -> Register:
        """A new register."""
        self.made.append(Register(name, kind, len(self.function.registers) + len(self.made)))
        return self.made[-1]

    def write(self, *parts: str, operands: Sequence[ptx.Operand]) -> None:
        """Write an instruction at the beginning."""
        self.begin.append(_instruction(replace(self.drawn[0], guard=None), parts, operands))

    @property
    def type(self) -> str:
        """The type of a number that is drawn."""
        return "u64" if max(type_bits(s.opcode.type) for s in self.drawn) > 8 * SIZE else "u32"

    def team_number(self, teams: Teams) -> Register:
        """A register with the number of the team of a lane."""
        number, lane = self.register("%mcheck_team", "u32"), self.register("%mcheck_lane", "u32")
        self.write("mov", "u32", operands=[number, ptx.Special("warpid")])
        self.write("mov", "u32", operands=[lane, ptx.Special("laneid")])
        self.write("mad", "lo", "u32", operands=[number, number, ptx.Immediate(WARP), lane])
        self.write("div", "u32", operands=[number, number, ptx.Immediate(teams.lanes)])
        if teams.ctas > 1:
            self.write("mov", "u32", operands=[lane, ptx.Special("cluster_ctarank")])
            self.write("mad", "lo", "u32", operands=[number, lane, ptx.Immediate(teams.in_cta), number])
        return number

    def widened(self, number: Register) -> Register:
        """The number in a register that is as wide as those that are drawn."""
        if self.type == number.type:
            return number
        wide = self.register("%mcheck_wide_team", self.type)
        self.write("cvt", self.type, number.type, operands=[wide, number])
        return wide

    def finish(
        self, module: Module, rounds: Register, tile: ptx.Operand, end: int, *parameters: Parameter
    ) -> GivenDraws:
        """The module, in which each lane draws ``tile`` in so many rounds, and then ``end``."""
        count, more = self.register("%mcheck_count", "u32"), self.register("%mcheck_more", "pred")
        self.write("mov", "u32", operands=[count, ptx.Immediate(0)])

        def select(statement: ptx.Statement) -> Iterator[ptx.Statement]:
            (target,) = statement.defs
            kind = f"b{type_bits(statement.opcode.type)}"
            yield _instruction(statement, ("setp", "lt", "u32"), [more, count, rounds])
            yield _instruction(statement, ("add", "u32"), [count, count, ptx.Immediate(1)])
            yield _instruction(statement, ("selp", kind), [target, tile, ptx.Immediate(end), more])

        body = enumerate(self.function.body)
        parts = [list(select(s)) if k in self.draws.statements else [s] for k, s in body]
        starts = list(accumulate(map(len, parts), initial=len(self.begin)))
        changed = replace(
            self.function,
            registers=(*self.function.registers, *self.made),
            parameters=(*self.function.parameters, *parameters),
            labels={name: starts[at] for name, at in self.function.labels.items()},
            body=(*self.begin, *(s for part in parts for s in part)),
        )
        given = replace(module, functions={**module.functions, self.function.name: changed})
        return GivenDraws(given, frozenset(starts[k + 1] - 1 for k in self.draws.statements))


def _instruction(like: ptx.Statement, parts: tuple[str, ...], operands: Sequence[ptx.Operand]) -> ptx.Statement:
    return replace(like, opcode=read_opcode(parts), operands=tuple(operands))


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
