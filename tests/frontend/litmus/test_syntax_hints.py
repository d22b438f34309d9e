"""Typical mistakes are met with what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.memory_layout import short_name
from mcheck.tools.cli.main import main

BLOCK = "PTX a\n{ .global .align 16 .b8 x[16]; .shared .align 16 .b8 s[16]; }\np@cta 0 {\n  CODE\n}\n"
TABLE = "PTX a\n{ x = 0; y = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r0, y ;\n"


def refused(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse(text, "a.litmus")
    return caught.value


@pytest.mark.parametrize(
    "code", ['asm volatile("st.global.u32 [x], 1;");', '__asm__ __volatile__("bar.sync 0;");', 'asm("bar.sync 0;");']
)
def test_inline_assembly(code: str) -> None:
    error = refused(BLOCK.replace("CODE", code))
    assert error.span is not None
    assert (error.code, error.span.line, error.span.column) == ("LIT011", 4, 3)
    assert error.hint is not None
    assert "inside the quotes" in error.hint
    assert "nvcc -ptx" in error.hint
    assert error.others == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__global__ void k(int *x) { x[threadIdx.x] = 1; }\n", "name the file .cu"),
        ("#include <cuda_runtime.h>\nint main() {}\n", "name the file .cu"),
        ("PTX a\n{ x = 0; }\n__global__ void k(int *x) { *x = 1; }\n", "name the file .cu"),
        ("import triton\n\n@triton.jit\ndef k(x):\n    pass\n", "pytest -p mcheck.triton FILE.py"),
        ("PTX a\n{ x = 0; }\n@gluon.jit\ndef k(x):\n    pass\n", "pytest -p mcheck.triton FILE.py"),
        ("a text\n", "the first line is 'PTX' and a name"),
    ],
)
def test_a_source_in_another_language(text: str, says: str) -> None:
    assert says in (refused(text).hint or "")


def test_an_expectation_with_a_dash() -> None:
    error = refused(BLOCK.replace("CODE", "bar.sync 0;") + "expect race-free\n")
    assert error.message == "unknown expectation 'race-free'"
    assert error.expected == "one of pass, fail, clean, race, undefined, deadlock"
    assert error.hint == "write expect clean if there is no error at all"
    assert error.span is not None
    assert error.span.length == len("race-free")


def test_the_sizes_of_the_other_cache_operator() -> None:
    error = refused(BLOCK.replace("CODE", "cp.async.cg.shared.global [s], [x], 8;"))
    assert error.expected == "16; cp.async.ca takes 4, 8 or 16"
    assert refused(BLOCK.replace("CODE", "cp.async.ca.shared.global [s], [x], 2;")).expected == "4 or 8 or 16"


def test_a_missing_bar_in_a_table() -> None:
    error = refused(TABLE + " st.weak y, 1     ld.weak r1, x ;\nexists (P1:r0 == 1)\n")
    assert error.hint == "the row has 1 cell for 2 threads: is a '|' missing?"
    assert refused(TABLE + " st.weak y, 1 2 | ld.weak r1, x ;\nexists (P1:r0 == 1)\n").hint is None


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (" MOV [x],$1 | MOV EAX,[y] ;", "MOV"),
        (" STR W0,[X1] | LDR W0,[X1] ;", "STR"),
        (" sw x5,0(x6) | fence rw,rw ;", "sw"),
    ],
)
def test_another_architecture_under_a_header_of_ptx(row: str, word: str) -> None:
    error = refused(f"PTX a\n{{ x = 0; y = 0; }}\n P0 | P1 ;\n{row}\nexists (x = 1)\n")
    assert error.code == "LIT040"
    assert error.hint is not None
    assert error.hint.startswith(f"{word} is not a PTX instruction")
    assert (
        refused("PTX a\n{ x = 0; }\n P0 | P1 ;\n st.weak x, 1 | ld.weak r0, x ;\n").hint
        == "name the CTA in which it runs"
    )


@pytest.mark.parametrize(("name", "command"), [("a.ptx", "check"), ("a.litmus", "run"), (".", "check")])
def test_a_file_in_place_of_a_command(name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert f"The command is missing: mcheck {command} {name}" in capsys.readouterr().err


def test_a_module_without_a_launch_is_told_who_makes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.ptx").write_text(".version 8.7 .target sm_90 .address_size 64 .entry k(.param .u32 n) { ret; }")
    assert main(["check", str(tmp_path / "k.ptx")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "mcheck.integrations.cuda records" in told
    assert "mcheck.integrations.triton derives one" in told


@pytest.mark.parametrize(
    ("mangled", "short"),
    [
        ("_ZZ4gemmILi16EEvPfPKfS2_iiE2As", "As"),
        ("_ZZN5outer5innerILi128ELb1EEEvPK6float4E4tile", "tile"),
        ("_ZZ1kPfE3buf__12_", "buf"),
        ("_ZZ1kvE4full_0", "full"),
        ("_ZN3foo3barE", "bar"),
        ("_Z5scalePff", "scale"),
        ("_ZL4tile", "tile"),
        ("_Z4flagILb1EE", "flag"),
        ("smem", "smem"),
    ],
)
def test_names_that_c_has_mangled(mangled: str, short: str) -> None:
    assert short_name(mangled) == short
