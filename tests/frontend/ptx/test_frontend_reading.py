"""Reading modules: every form that the assembler takes, what names mean, and what is said of wrong ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.ptx.lowering import to_instruction
from mcheck.frontend.ptx.module import (
    SINK,
    Address,
    Arguments,
    Function,
    Immediate,
    Label,
    Module,
    Pair,
    Part,
    Register,
    Statement,
    Symbol,
    Vector,
)
from mcheck.frontend.ptx.problems import MESSAGES
from mcheck.frontend.ptx.reader import parse_module, read_module
from mcheck.frontend.ptx.source_lines import LOC, Lines
from mcheck.isa.kinds import Kind
from tests.effort import effort

EVERY_FORM = Path(__file__).parents[2] / "simt" / "every_form.ptx"
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


@pytest.fixture(scope="module")
def every() -> Module:
    return read_module(str(EVERY_FORM))


def kernel(body: str, head: str = "") -> Function:
    """The entry with this body, some registers declared."""
    registers = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;"
    return parse_module(f"{HEAD}{head}\n.entry k(.param .u64 a) {{ {registers}\n{body}\n}}").functions["k"]


def one(body: str) -> Statement:
    return kernel(body).body[0]


def names(statement: Statement) -> tuple[list[str], list[str]]:
    """What is written and what is read."""
    return [r.name for r in statement.defs], [r.name for r in statement.uses]


# --- the module ---------------------------------------------------------------------------------------------------


def test_the_head_of_a_module(every: Module) -> None:
    assert (every.version, every.target, every.address_size) == ("8.7", "sm_90a", 64)
    assert every.entries == ("kernel",)
    assert every.files == {1: "/src/kernel.cu", 2: "/src/helper.h"}
    assert every.aliases == {"also_first": "first_case"}
    assert every.pragmas == ("nounroll",)


def test_variables_with_their_sizes_and_initialisers(every: Module) -> None:
    found = every.variables
    assert found["dynamic_smem"].size is None
    assert (found["dynamic_smem"].linkage, found["dynamic_smem"].align) == ("extern", 128)
    assert found["barriers"].size == 32
    values = [(at, value.value) for at, _, value in found["table"].initial or () if isinstance(value, Immediate)]
    assert values == [(0, 1), (1, 2), (4, 16), (5, 16), (6, 5), (7, 255)]
    assert found["place"].initial == ((0, 8, Symbol("table", 4, generic=True)),)
    assert found["words"].shape == (6,)
    assert [v.value for _, _, v in found["words"].initial or () if isinstance(v, Immediate)] == [1, 2, 14, 32, 5, -1]
    assert (found["pair"].width, found["pair"].size) == (2, 8)
    assert found["weak_word"].linkage == "weak"


def test_floats_are_their_bits(every: Module) -> None:
    half, same, negative = (value for _, _, value in every.variables["halves"].initial or ())
    assert half == Immediate(struct.unpack("<Q", struct.pack("<d", 0.5))[0], "f64")
    assert same == Immediate(0x3F000000, "f32")
    assert negative == Immediate(struct.unpack("<Q", struct.pack("<d", -1.5))[0], "f64")


def test_an_entry_with_its_parameters_and_directives(every: Module) -> None:
    found = every.functions["kernel"]
    assert [(p.name, p.size, p.align) for p in found.parameters] == [
        ("kernel_param_0", 128, 64), ("kernel_param_1", 8, 8), ("kernel_param_2", 4, 4),
    ]  # fmt: skip
    assert (found.parameters[1].pointer, found.parameters[1].pointer_align) == ("global", 16)
    assert found.directives == {"reqntid": (128, 1, 1), "minnctapersm": (2,), "reqnctapercluster": (2,)}
    assert found.pragmas == ("nounroll",)
    assert [r.index for r in found.registers] == list(range(len(found.registers)))


def test_a_function_that_takes_registers(every: Module) -> None:
    found = every.functions["twice"]
    assert [(p.name, p.space) for p in (*found.returns, *found.parameters)] == [("result", "reg"), ("value", "reg")]
    assert [r.name for r in found.registers] == ["result", "value"]


def test_calls_and_tables_of_targets(every: Module) -> None:
    found = every.functions["kernel"]
    calls = [s.operands for s in found.body if s.kind is Kind.CALL]
    register = found.registers
    r11, r1, rd5 = (next(r for r in register if r.name == name) for name in ("%r11", "%r1", "%rd5"))
    assert calls == [
        (Arguments((r11,)), Symbol("twice"), Arguments((r1,))),
        (Arguments((Symbol("returned"),)), Symbol("thrice"), Arguments((Symbol("argument"), Symbol("rest")))),
        (rd5, Label("targets")),
        (rd5, Label("prototype_0")),
    ]
    assert found.call_targets == {"targets": ("first_case", "other_case")}
    assert found.branch_targets == {"ts": ("$L__BB0_3", "$L__BB0_4")}
    assert found.prototypes["prototype_0"].parameters == ()


def test_names_of_inner_blocks_are_names_of_their_own(every: Module) -> None:
    found = every.functions["kernel"]
    waits = [s for s in found.body if s.kind is Kind.MBARRIER_WAIT]
    assert [w.operands[0] for w in waits] == [r for r in found.registers if r.name in ("P1", "P1#2")]
    assert {"LAB_WAIT", "LAB_WAIT#2", "DONE"} <= found.labels.keys()
    back = [s for s in found.body if s.kind is Kind.BRANCH and s.operands == (Label("LAB_WAIT#2"),)]
    assert found.labels["LAB_WAIT#2"] == found.body.index(back[0]) - 1


def test_where_the_code_came_from(every: Module) -> None:
    body = every.functions["kernel"].body
    first, inlined = body[0].source, next(s.source for s in body if s.text.startswith("mov.b64 %rd2"))
    assert first is not None
    assert inlined is not None
    assert (first.path, first.line, first.column) == ("/src/kernel.cu", 11, 7)
    assert (inlined.path, inlined.line, inlined.function) == ("/src/helper.h", 5, "help")
    assert inlined.inlined_at == first


def outermost_lines(*locs: str) -> list[int | None]:
    """The lines of ``kernel.cu`` at which the code of these directives was inlined, or that it is of."""
    lines = Lines({1: "kernel.cu", 2: "barrier.h", 3: "copy.h"}, {})
    found = []
    for loc in locs:
        match = LOC.fullmatch(f".loc {loc}")
        assert match is not None
        source = lines.take(match)
        while source is not None and source.inlined_at is not None:
            source = source.inlined_at
        found.append(None if source is None else source.line)
    return found


def test_a_call_within_a_call_belongs_to_the_line_beside_it() -> None:
    """A compiler names the place ``barrier.h`` 250, not which call of it, when it copies a part of a loop."""
    twice = ("2 250 4, function_name f, inlined_at 1 25 7", "2 250 4, function_name f, inlined_at 1 30 7")
    inner = "2 87 2, function_name g, inlined_at 2 250 4"
    assert outermost_lines(twice[0], inner, twice[1], inner) == [25, 25, 30, 30]
    copied = "3 262 2, function_name h, inlined_at 1 25 9"
    assert outermost_lines(*twice, copied, inner) == [25, 30, 25, 25]
    assert outermost_lines(*twice, "1 26 3", inner)[-1] == 25
    assert outermost_lines(*twice, "1 28 3", inner)[-1] == 30  # near to neither: the last that was seen
    assert outermost_lines(*twice, "3 25 1", inner)[-1] == 30  # a line of another file


def test_a_call_that_has_returned_makes_no_more_calls() -> None:
    """In an unrolled loop with calls in lines 41 and 42, the end of the one is followed by what the other one calls."""
    step = [f"2 24 3, function_name step, inlined_at 1 {line} 5" for line in (41, 42)]
    calls = [f"2 21 3, function_name step, inlined_at 1 {line} 5" for line in (41, 42)]
    ready = "3 232 9, function_name wait, inlined_at 2 21 3"
    assert outermost_lines(*calls, step[0], "1 41 5", ready, step[1], "1 42 5", ready)[4:] == [42, 42, 42, 41]
    assert outermost_lines(*calls, step[0], ready, ready)[3:] == [41, 41]
    assert outermost_lines(*calls, "1 41 5", ready)[-1] == 41  # before the call: its arguments


def test_inline_assembly_is_at_the_line_of_its_statement() -> None:
    """LLVM goes on counting within the text of the assembly, from the statement's line on, into lines of other code."""
    body = kernel("""
    .loc 1 35 9
    add.s32 %r1, %r1, 8;
    // begin inline asm

    {
    .reg .pred complete;
    .loc 1 38 9
    waitLoop:
    .loc 1 39 9
    mbarrier.try_wait.parity.shared::cta.b64 complete, [%r1], %r2;
    @!complete bra.uni waitLoop;
    }
    // end inline asm
    .loc 1 36 15
    add.s32 %r2, %r2, 1;
    // begin inline asm
    .loc 1 40 5    // kernel.py:40:5
    membar.cta;
    .loc 1 41 5
    membar.gl;
    // end inline asm
    .loc 1 50 5
    // begin inline asm
    // a comment of the assembly
    .loc 1 51 5
    membar.sys;
    // end inline asm
    add.s32 %r3, %r3, 1;
    """).body
    assert [s.source.line for s in body if s.source] == [35, 35, 35, 36, 40, 40, 50, 50]


def test_a_statement_knows_its_place() -> None:
    found = (
        parse_module(f"{HEAD}.entry k() {{\n\n\t.reg .b32 %r<3>;\n\tmov.b32 %r1,\n  5; exit;\n}}").functions["k"].body
    )
    assert [(s.span.line, s.span.column, s.span.length, s.text) for s in found] == [
        (7, 2, 12, "mov.b32 %r1, 5"), (8, 6, 4, "exit"),
    ]  # fmt: skip


# --- operands -----------------------------------------------------------------------------------------------------


def test_operands() -> None:
    r1 = Register("%r1", "b32", 0)
    assert one("mov.b32 {%r1, _}, %rd1;").operands == (Vector((r1, SINK)), Register("%rd1", "b64", 1))
    assert one("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r1];").operands == (Vector((r1,)), Address(r1))
    assert one("st.shared.b32 [%r1+-4], -(3*2)+1;").operands == (Address(r1, -4), Immediate(-5))
    assert one("setp.eq.b32 %p1|_, %r1, 0;").operands[0] == Pair(Register("%p1", "pred", 0), SINK)
    assert one("st.param.b32 [a+4], 0xffffffffffffffff;").operands == (
        Address(Symbol("a"), 4),
        Immediate((1 << 64) - 1),
    )
    assert one("vadd.s32.s32.s32 %r1, %r1.b3, 1;").operands[1] == Part(r1, "b3")
    assert one("ld.shared.b32 %r1, [16];").operands[1] == Address(None, 16)
    assert one("cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r1, 5}];").operands == (
        Address(Register("%rd1", "b64", 0), 0, (Vector((Register("%r1", "b32", 1), Immediate(5))),)),
    )


def test_a_blank_in_an_opcode() -> None:
    found = one("cp.async.bulk.global.shared::cta.bulk_group .L2::cache_hint [%rd1], [%r1], 16, %rd2;")
    assert found.opcode.parts[-2:] == ("bulk_group", "L2::cache_hint")


def test_a_range_may_end_in_a_digit() -> None:
    found = kernel(".reg .b32 %x1<3>; .reg .f32 %x<12>; mov.b32 %x11, %x9; mov.b32 %x12, 0;")
    assert {r.name: r.type for r in found.registers} == {"%x11": "b32", "%x9": "f32", "%x12": "b32"}


def test_what_is_written_and_read() -> None:
    assert names(one("@!%p1 mad.lo.u32 %r1, %r2, %r3, 4;")) == (["%r1"], ["%r2", "%r3", "%p1"])
    assert names(one("st.shared.v2.b32 [%r1], {%r2, %r3};")) == ([], ["%r1", "%r2", "%r3"])
    assert names(one("bar.sync %r1, %r2;")) == ([], ["%r1", "%r2"])
    assert names(one("bar.red.popc.u32 %r1, 0, %p1;")) == (["%r1"], ["%p1"])
    assert names(one("mma.made.up {%r1, %r2}, {%r3}, %r4;")) == (["%r1", "%r2"], ["%r3", "%r4"])
    assert names(one("wgmma.mma_async.made.up {%r1}, %rd1, %rd2, 1;")) == (["%r1"], ["%r1", "%rd1", "%rd2"])


def test_a_statement_for_the_table() -> None:
    from mcheck.ir.expr import Binary, Const, Reg
    from mcheck.ir.ops import Guard, Store
    from mcheck.isa import decode

    found = decode(to_instruction(one("@!%p1 st.release.cta.shared.b32 [%r1+8], %r2;")), dialect=False)
    assert isinstance(found, Store)
    assert (found.address, found.sem) == (Binary("+", Reg("%r1"), Const(8)), "release")
    assert found.guard == Guard(Reg("%p1"), negated=True)


def _code(text: str) -> str | None:
    """The code of the error that reading ``text`` ends in."""
    try:
        parse_module(text)
    except InputError as error:
        return error.code
    return None


# --- errors -------------------------------------------------------------------------------------------------------

WRONG = {
    "": "PTX002",
    "PTX test\n{}\n": "PTX006",
    ".version 8.7\n.address_size 64\n": "PTX007",
    f"{HEAD}.entry k() {{\nret;\n": "PTX008",
    f"{HEAD}.entry k() {{ {{ ret; }}": "PTX008",
    f"{HEAD}.entry k() {{ ret; .entry l() {{ ret; }}": "PTX008",
    f"{HEAD}.entry k(.param .u32 a": "PTX009",
    f"{HEAD}.entry k() {{\nret\n": "PTX009",
    f"{HEAD}.entry k() {{ ret }}": "PTX009",
    f"{HEAD}.entry k() {{ mov.b32 }}; ret;\n}}": "PTX010",
    f"{HEAD}.entry k() {{ 5; }}": "PTX010",
    f"{HEAD}.entry k() {{ .reg .b32 %r<3>; mov.b32 %r1, %r2\n mov.b32 %r2, %r1; }}": "PTX015",
    f"{HEAD}}}": "PTX010",
    f"{HEAD}.global .u32 a = 12ab;": "PTX011",
    f"{HEAD}.global .u64 a = 0x12345678901234567;": "PTX012",
    f"{HEAD}.global .u32 a = 1/0;": "PTX013",
    f"{HEAD}.global .u32 a = {'(' * 90}1;": "PTX014",
    f"{HEAD}.global .u32 a; .global .u32 a;": "PTX020",
    f"{HEAD}.entry k() {{ .reg .b32 r; .reg .b32 r; ret; }}": "PTX020",
    f"{HEAD}.global .u33 a;": "PTX021",
    f"{HEAD}.global .align 3 .u32 a;": "PTX022",
    f"{HEAD}.global .u32 a[-1];": "PTX023",
    f"{HEAD}.global .u32 a[2] = {{1, 2, 3}};": "PTX024",
    f"{HEAD}.entri k() {{ ret; }}": "PTX025",
    f"{HEAD}.entry k() {{ .rge .b32 %r<2>; }}": "PTX025",
    f"{HEAD}.entry k() .reg .b32 %r<2>; ret; }}": "PTX025",
    f"{HEAD}.entry k() .regntid 5 {{ ret; }}": "PTX025",
    f"{HEAD}.entry k() {{ ret; }} .entry k() {{ ret; }}": "PTX026",
    f"{HEAD}.extern .shared .b8 s[]; .global .b8 s[4];": "PTX027",
    f"{HEAD}.entry k() {{ {'{' * 300}": "PTX028",
    f"{HEAD}.entry k() {{ .reg .b32 %r<2>; mov.b32 %r1, %r2; }}": "PTX030",
    f"{HEAD}.entry k() {{ call nothing; }}": "PTX030",
    f"{HEAD}.entry k() {{ bra L; }}": "PTX031",
    f"{HEAD}.entry k() {{ {{ L: ret; }} bra L; }}": "PTX031",
    f"{HEAD}.entry k() {{ L: ret; L: ret; }}": "PTX032",
    f"{HEAD}.entry k() {{ .reg .v2 .b32 v; mov.b32 v.z, 1; }}": "PTX033",
    f"{HEAD}.entry k() {{ .reg .b32 %r<2>; mov.b32 %r0, %r1.x; }}": "PTX033",
    f"{HEAD}.entry k() {{ .reg .b32 %r<2>; mov.b32 %r0, %r1.b; }}": "PTX033",
    f"{HEAD}.entry k() {{ .reg .b32 %r<2>; @%r1 ret; }}": "PTX034",
}


@pytest.mark.parametrize(("text", "code"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_place(text: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_module(text, "wrong.ptx")
    assert caught.value.code == code, caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.path == "wrong.ptx"
    assert 1 <= caught.value.span.line <= text.count("\n") + 1


def test_a_register_beyond_its_range_is_told_the_range() -> None:
    with pytest.raises(InputError) as caught:
        kernel("mov.b32 %r9, 0;")
    assert caught.value.hint == "%r<9> declares %r0 to %r8"


def test_a_program_or_cubin_is_no_module(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cubin"
    file.write_bytes(b"\x7fELF\0\0\0\1")
    with pytest.raises(InputError) as caught:
        read_module(str(file))
    assert caught.value.code == "PTX003"


def test_every_truncation_is_an_error_or_a_module() -> None:
    text, codes = EVERY_FORM.read_text(), set[str | None]()
    for end in range(0, len(text), 23):
        codes.add(_code(text[:end]))
    assert codes <= {None, "LIT008", *MESSAGES}
    assert len(codes) > 5


def test_a_long_module_is_read_in_time_that_grows_with_its_length() -> None:
    line = "\tadd.s32 %r1, %r2, 17;\n\t.loc 1 7 3\n\t@%p1 st.shared.b32 [%r3+16], %r4;\n"

    def read() -> None:
        assert len(kernel(line * 10_000).body) == 20_000

    assert effort(read, 20) < 20
