"""Which registers are live, and which are named on the ways between two places, beside all ways through functions."""

from __future__ import annotations

import random

from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.execution.register_reads import places_after
from mcheck.simt.grid.looks.function_ways import END, FunctionWays

REGISTERS = 4
LENGTH = 9


def draw(rng: random.Random) -> Unit:
    """A function of computations and branches, guarded or not."""
    lines = []
    for k in range(LENGTH):
        a, b, c = (rng.randrange(REGISTERS) for _ in range(3))
        guard = rng.choice(("", "", "@%p bra_", "@%q "))
        if guard.endswith("bra_") or (not guard and rng.random() < 0.15):
            text = f"{guard.removesuffix('bra_')}bra L{rng.randrange(LENGTH + 1)};"
        else:
            text = f"{guard}{rng.choice((f'add.u32 %r{a}, %r{b}, %r{c}', f'setp.eq.u32 %p, %r{a}, %r{b}'))};"
        lines.append(f"L{k}: {text}")
    body = "\n".join((*lines, f"L{LENGTH}: ret;"))
    text = f".reg .b32 %r<{REGISTERS}>;\n.reg .pred %p, %q;\n{body}"
    module = parse_module(f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n{text}\n}}")
    return Unit(module.functions["k"], 0, 100)


def is_read(unit: Unit, row: int, place: int, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a way from a place reads a register before it writes it, by following each."""
    body = unit.function.body
    if place in seen or place >= len(body):
        return False
    statement = body[place]
    if row in {unit.frame + r.index for r in statement.uses}:
        return True
    if statement.guard is None and row in {unit.frame + r.index for r in statement.defs}:
        return False
    return any(is_read(unit, row, k, seen | {place}) for k in places_after(unit.function, place))


def named(unit: Unit, place: int, end: int, seen: frozenset[int] = frozenset()) -> frozenset[int]:
    """The registers on all ways from a place to another one."""
    body = unit.function.body
    if place in seen or place == end or place >= len(body):
        return frozenset()
    mine = frozenset(unit.frame + r.index for r in (*body[place].uses, *body[place].defs))
    after = places_after(unit.function, place)
    return mine.union(*(named(unit, k, end, seen | {place}) for k in after))


def test_live_registers_are_those_that_some_way_reads() -> None:
    rng = random.Random(1)
    for unit in (draw(rng) for _ in range(60)):
        ways = FunctionWays(unit)
        rows = [unit.frame + r.index for r in unit.function.registers]
        for place in range(len(unit.function.body)):
            assert ways.live[place] == {row for row in rows if is_read(unit, row, place)}, unit.function.body


def test_a_region_names_the_registers_on_all_ways_to_its_end() -> None:
    rng = random.Random(2)
    for unit in (draw(rng) for _ in range(60)):
        ways = FunctionWays(unit)
        for place, end in ways.meets.items():
            if place != END:
                assert ways.region(place, end).named == named(unit, place, end)
