"""Steps are made of every instruction that is whole, and of nothing else, whatever an edit makes of it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.launch_reader import build_launch, from_file
from mcheck.frontend.ptx.module import Operand, Statement
from mcheck.frontend.ptx.reader import parse_module, read_module
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Lanes
from mcheck.simt.instructions.dispatch import compile_statement
from mcheck.simt.trace_extraction import Runner

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("cuda/tensormap_edit", "cuda/stolen_tiles", "cuda/wgmma_tile", "gluon/blackwell_sm100", "cuda/cluster_ring")
TYPES = ("b", "u", "x", "f32", "b7", "pred", "b128", "")


def edited(choose: random.Random, statement: Statement, parts: list[str], operands: list[Operand]) -> Statement:
    """The statement with a part of its name or an operand taken away, replaced or added."""
    opcode, given = list(statement.opcode.parts), list(statement.operands)
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
    return replace(statement, opcode=read_opcode(tuple(opcode)), operands=tuple(given))


@pytest.mark.parametrize("name", NAMES)
def test_no_edit_of_an_instruction_breaks_what_makes_its_step(name: str) -> None:
    whole = read_module(CORPUS / f"{name}.ptx")
    given = build_launch(whole, from_file(CORPUS / f"{name}.json"))
    runner = Runner(whole, given, Limit(None))
    compiler = Compiler(whole, runner.code, Lanes(given, runner.code.rows), runner.places)
    choose = random.Random(1)
    for unit in runner.code.units:
        body = unit.function.body
        parts = sorted({part for s in body for part in s.opcode.parts})
        operands = [o for s in body for o in s.operands]
        for at, statement in list(enumerate(body))[:: max(len(body) // 80, 1)]:
            assert find_fault(statement) is None, statement.text
            for _ in range(4):
                compile_statement(compiler, unit, edited(choose, statement, parts, operands), unit.start + at)


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
    assert all(find_fault(s) is None for s in parse_module(text).functions["k"].body)
    changed = [s for s in parse_module(text.replace(old, new)).functions["k"].body if find_fault(s) is not None]
    assert [s.opcode.text for s in changed] == [new]


COUNTS = {  # of each: whether the assembler takes it (ptxas 13.0, sm_90)
    "cvt.u64.u32 %rd1, %r1": True,
    "cvt.u64.u32 %rd1, %r1, %r2": False,
    "cvt.sat.s32.s64 %r1, %rd1, %r2": False,
    "cvt.pack.sat.s16.s32 %r1, %r2, %r3": True,
    "cvt.pack.sat.s8.s32.b32 %r1, %r2, %r3, %r1": True,
    "min.s32 %r1, %r2, %r3": True,
    "min.s32 %r1, %r2, %r3, %r1": False,
    "max.s16x2 %r1, %r2, %r3": True,
    "max.s16x2 %r1, %r2, %r3, %r1": False,
    "lop3.b32 %r1, %r2, %r3, %r1, 3": True,
    "lop3.b32 %r1, %r2, %r3, %r1, 3, %p1": False,
    "lop3.or.b32 %r1|%p1, %r2, %r3, %r1, 3, %p1": True,
    "lop3.or.b32 %r1|%p1, %r2, %r3, %r1, 3": False,
}


@pytest.mark.parametrize(("text", "legal"), COUNTS.items(), ids=COUNTS.keys())
def test_an_instruction_has_the_operands_that_its_name_asks_for(text: str, legal: bool) -> None:
    registers = ".reg .pred %p<4>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;"
    whole = f".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {{\n{registers}\n{text};\nret;\n}}\n"
    given, _ = parse_module(whole).functions["k"].body
    wrong = find_fault(given)
    assert (wrong is None) is legal
    if wrong is not None:
        assert wrong.message.startswith(f"'{text.split(maxsplit=1)[0]}' takes ")
