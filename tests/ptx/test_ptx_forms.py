"""Steps are made of every instruction that is whole, and of nothing else, whatever an edit makes of it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from mcheck.limit import Limit
from mcheck.ptx.compiler import Compiler
from mcheck.ptx.follow import Runner
from mcheck.ptx.forms import fault
from mcheck.ptx.lanes import Lanes
from mcheck.ptx.launching import from_file, launch
from mcheck.ptx.module import Operand, Statement
from mcheck.ptx.reading import module, read

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("cuda/tensormap_edit", "cuda/stolen_tiles", "cuda/wgmma_tile", "gluon/blackwell_sm100", "cuda/cluster_ring")
TYPES = ("b", "u", "x", "f32", "b7", "pred", "b128", "")


def edited(choose: random.Random, statement: Statement, parts: list[str], operands: list[Operand]) -> Statement:
    """The statement with a part of its name or an operand taken away, replaced or added."""
    opcode, given = list(statement.opcode), list(statement.operands)
    match choose.randrange(6):
        case 0 if len(opcode) > 1:
            opcode.pop(choose.randrange(1, len(opcode)))
        case 1:
            opcode[choose.randrange(len(opcode))] = choose.choice(parts)
        case 2 if given:
            given.pop(choose.randrange(len(given)))
        case 3 if given:
            given[choose.randrange(len(given))] = choose.choice(operands)
        case 4:
            opcode[-1] = choose.choice(TYPES)
        case _:
            given.append(choose.choice(operands))
    return replace(statement, opcode=tuple(opcode), operands=tuple(given))


@pytest.mark.parametrize("name", NAMES)
def test_no_edit_of_an_instruction_breaks_what_makes_its_step(name: str) -> None:
    whole = read(CORPUS / f"{name}.ptx")
    given = launch(whole, from_file(CORPUS / f"{name}.json"))
    runner = Runner(whole, given, Limit(None))
    compiler = Compiler(whole, runner.code, Lanes(given, runner.code.rows), runner.places)
    choose = random.Random(1)
    for unit in runner.code.units:
        body = unit.function.body
        parts = sorted({part for s in body for part in s.opcode})
        operands = [o for s in body for o in s.operands]
        for at, statement in list(enumerate(body))[:: max(len(body) // 80, 1)]:
            assert fault(statement) is None, statement.text
            for _ in range(4):
                compiler._step(unit, edited(choose, statement, parts, operands), unit.start + at)


@pytest.mark.parametrize(
    ("old", "new"), [("setp.lt.u32", "setp.ltt.u32"), ("mul.lo.s32", "mul.lw.s32"), ("and.b32", "and.lo.b32")]
)
def test_a_misspelt_qualifier_is_no_instruction(old: str, new: str) -> None:
    """Its result decides what is executed: it is not taken for one that nobody knows."""
    text = """.version 8.0
.target sm_90
.address_size 64
.entry k() {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  mul.lo.s32 %r1, %r2, %r3;
  and.b32 %r1, %r1, 3;
  setp.lt.u32 %p1, %r1, 7;
  @%p1 exit;
}
"""
    assert all(fault(s) is None for s in module(text).functions["k"].body)
    changed = [s for s in module(text.replace(old, new)).functions["k"].body if fault(s) is not None]
    assert [".".join(s.opcode) for s in changed] == [new]
