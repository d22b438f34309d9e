"""Every form that the instruction table has is one that a module may have, too."""

from __future__ import annotations

import pytest

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import lane_function
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.isa.families import ptx_families
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Lanes
from mcheck.simt.instructions.dispatch import compile_statement
from mcheck.simt.trace_extraction import Runner
from tests.assembler import Assembler
from tests.isa.agreement.compare import refusal
from tests.isa.agreement.lines import all_lines
from tests.isa.agreement.sample import COUNT, OBJECTS, REGISTERS

LINES = [line for line in all_lines(limit=24, bases=1) if line.change == "variant"]

BESIDE_THE_TABLE = (
    "min.NaN.f32 ff1, ff2, ff3",
    "max.NaN.xorsign.abs.bf16x2 r1, r2, r3",
    "min.ftz.NaN.f32 ff1, ff2, ff3, ff4",
    "prmt.b32.f4e r1, r2, r3, r4",
    "prmt.b32.rc16 r1, r2, r3, 1",
    "cvt.rs.satfinite.e4m3x4.f32 r1, {ff1, ff2, ff3, ff4}, r2",
    "vadd2.s32.s32.s32.sat r1.h10, r2.h32, r3.h10, r4",
    "set.gt.ftz.f16x2.f16x2 r1, r2, r3",
    "ldu.global.v4.f32 {ff1, ff2, ff3, ff4}, [rd1]",
)
"""Forms of which only the kind of the instruction is known."""


def module(lines: list[str], target: str) -> str:
    """A module with these instructions, one on each line."""
    head = [".version 9.1", f".target {target}", ".address_size 64"]
    head += [f".{space} .align 128 .b8 {name}[1024];" for name, space in OBJECTS.items() if space != "shared"]
    head += [".visible .entry k()", "{"]
    head += [f".{space} .align 128 .b8 {name}[1024];" for name, space in OBJECTS.items() if space == "shared"]
    head += [f".reg .{kind} {prefix}<{COUNT}>;" for prefix, kind in REGISTERS.items()]
    return "\n".join([*head, *(f"{line};" for line in lines), "L0:", "ret;", "}", ""])


def mistakes(lines: list[str], target: str) -> list[str]:
    """What is no instruction to a module check, with what it says."""
    whole = parse_module(module(lines, target))
    runner = Runner(whole, build_launch(whole, from_object({"grid": 1, "block": 32})), Limit(None))
    compiler = Compiler(whole, runner.code, Lanes(runner.launch, runner.code.rows), runner.places)
    (unit,) = runner.code.units
    for at, statement in enumerate(unit.function.body):
        compile_statement(compiler, unit, statement, unit.start + at)
    return [f"{unit.function.body[at].text}: {error.message}" for at, error in compiler.mistakes.items()]


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_107a"])
@pytest.mark.parametrize("part", range(4))
def test_what_the_table_takes_is_an_instruction_of_a_module(target: str, part: int) -> None:
    legal = [line.text for line in LINES[part::4] if refusal(line, target) is None]
    assert len(legal) > 250
    assert mistakes(legal, target) == []


def test_a_form_of_each_instruction_is_one_of_a_module() -> None:
    firsts: dict[str, str] = {}
    for line in LINES:
        if refusal(line, "sm_107a") is None:
            firsts.setdefault(line.family, line.text)
    assert len(firsts) > 0.9 * len(ptx_families())
    assert mistakes(list(firsts.values()), "sm_107a") == []


def test_integer_products_end_with_satfinite_and_binary_ones_with_popc() -> None:
    operands = "{r1, r2, r3, r4}, rd1, rd2, p1"
    shape = "wgmma.mma_async.sync.aligned.m64n8k"
    legal = [f"{shape}32.s32.s8.s8.satfinite {operands}", f"{shape}256.s32.b1.b1.and.popc {operands}"]
    assert mistakes(legal, "sm_90a") == []
    assert len(mistakes([line.replace("satfinite", "satfin").replace("popc", "pop") for line in legal], "sm_90a")) == 2


def test_forms_beside_the_table() -> None:
    assert mistakes(list(BESIDE_THE_TABLE), "sm_100a") == []
    wrong = ["min.nan.f32 ff1, ff2, ff3", "prmt.b32.f5e r1, r2, r3, r4", "and.b32.rc16 r1, r2, r3"]
    assert len(mistakes(wrong, "sm_100a")) == 3


@pytest.mark.daily(least=0)
def test_the_assembler_takes_the_forms_beside_the_table(assembler: Assembler) -> None:
    for line in BESIDE_THE_TABLE:
        status, said = assembler.assemble(module([line], "sm_100a"), "-arch", "sm_100a", "-c")
        assert status == 0, said


def test_results_of_other_modes_are_not_those_of_the_plain_ones() -> None:
    """The modes of prmt select by two bits; min and max with .relu have no negative result (9.7.9.7, 9.7.1.11)."""
    for name in ("prmt.b32.f4e", "prmt.f4e.b32", "min.relu.s32", "max.relu.s32"):
        assert lane_function(read_opcode(tuple(name.split(".")))) is None
    for name in ("prmt.b32", "min.s32", "max.u64"):
        assert lane_function(read_opcode(tuple(name.split(".")))) is not None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ld.global.L2::evict_last.v8.f32 {ff1, ff2, ff3, ff4, ff5, ff6, ff7, ff8}, [rd1]", None),
        ("ld.global.L1::evict_first.L2::evict_normal.nc.v4.b64 {rd2, rd3, rd4, rd5}, [rd1]", None),
        ("st.relaxed.gpu.global.L2::evict_first.v4.u64 [rd1], {rd2, rd3, rd4, rd5}", None),
        ("ld.global.L2::evict_last.f32 ff1, [rd1]", "'.L2::evict_last' needs an access of 256 bits"),
        ("st.global.L2::evict_last.v4.b32 [rd1], {r1, r2, r3, r4}", "'.L2::evict_last' needs an access of 256 bits"),
    ],
)
def test_the_priority_in_the_second_cache_is_for_accesses_of_256_bits(line: str, message: str | None) -> None:
    found = mistakes([line], "sm_100a")
    assert found == ([] if message is None else [f"{line}: {message}"])


def test_the_fill_is_checked_by_the_table_alone() -> None:
    whole = parse_module(module(["st.bulk.weak.shared::cta [rd1], 64, 0", "st.bulk [rd1], rd2, 0"], "sm_100a"))
    assert all(find_fault(statement) is None for statement in whole.functions["k"].body)
    wrong = ["st.bulk.b32 [rd1], 64, 0", "st.bulk [rd1], 64, 1", "st.bulk [rd1], 64"]
    assert len(mistakes(wrong, "sm_100a")) == 3
