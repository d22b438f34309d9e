"""Functions, lists of warps, warpgroups, and files of common definitions: each says what is written out beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program
from mcheck.tools.cli.main import main

RING = """const S = 2, N = 8;
def stage(k) = k % S;
def turn(k) = k / S;
def full(k) = turn(k) % 2;
def empty(k) = full(k) ^ 1;
"""
TEST = """PTX t
"a ring"
{ .shared .align 16 .b8 buf[S][16]; .shared .b64 bar[S]; .global .u32 src[64]; }
def slot(k) = src + 16 * k;
P@cta 0 {
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [bar[stage(k)]], empty(k);
    ld.shared.u32 r0, [buf[stage(k)] + 4 * full(k)];
    ld.global.u32 r1, [slot(k)];
    if (stage(r1) == 1) { st.global.u32 [src], 1; }
  }
}
"""
WRITTEN_OUT = {
    "stage(k)": "k%S",
    "stage(r1)": "r1%S",
    "empty(k)": "((k/S)%2)^1",
    "full(k)": "((k/S)%2)",
    "slot(k)": "src + 16 * k",
    "def slot(k) = src + 16 * k;": "",
}


def threads(program: Program) -> list[object]:
    """What the threads are and execute; texts and places in the file aside."""
    return [(t.name, t.place, t.code) for t in program.threads]


def test_a_function_stands_for_what_it_is() -> None:
    plain = TEST.replace("def slot(k) = src + 16 * k;\n", "")
    for call, meaning in WRITTEN_OUT.items():
        plain = plain.replace(call, meaning)
    plain = plain.replace('"a ring"', '"a ring"\nconst S = 2, N = 8;')
    with_functions = TEST.replace('"a ring"', f'"a ring"\n{RING}')
    first, second = parse(with_functions, "t.litmus"), parse(plain, "t.litmus")
    assert [type(op) for op in first.threads[0].code] == [type(op) for op in second.threads[0].code]
    assert [repr(op).split("text=")[0].split("span=")[0] for op in first.threads[0].code] == [
        repr(op).split("text=")[0].split("span=")[0] for op in second.threads[0].code
    ]


@pytest.mark.parametrize("where", ["before the init block", "behind it"])
def test_an_included_file_says_what_the_test_could(tmp_path: Path, where: str) -> None:
    (tmp_path / "ring.inc").write_text(f"// a ring\n{RING}")
    sized = TEST if where == "before the init block" else TEST.replace("[S]", "[2]").replace("[S][16]", "[2][16]")
    include = 'include "ring.inc";\n'
    text = (
        sized.replace("{ .sh", include + "{ .sh") if sized is TEST else sized.replace("def slot", include + "def slot")
    )
    path = tmp_path / "t.litmus"
    path.write_text(text)
    program = load(str(path))
    assert program.doc == ("a ring",)
    assert threads(program) == threads(parse(sized.replace("{ .sh", RING + "{ .sh"), str(path)))


def test_lists_and_warpgroups_are_the_warps_that_they_name() -> None:
    def placed(placement: str) -> list[tuple[int, int]]:
        program = parse(f"PTX t\nconst A = 3;\n{{ }}\nP@cta 0, {placement} {{ mov.u32 r0, 1; }}\n", "t.litmus")
        return [(t.place.warp, t.place.lane) for t in program.threads]

    assert placed("warp 1, A, 5..7, lane 0") == [(1, 0), (3, 0), (5, 0), (6, 0)]
    assert placed("lane 0, 4, warp 5, 1") == [(1, 0), (1, 4), (5, 0), (5, 4)]
    assert placed("warpgroup 1, lane 0") == [(w, 0) for w in range(4, 8)]
    assert placed("warpgroup 0, 2..A, lane 1") == [(w, 1) for w in (0, 1, 2, 3, 8, 9, 10, 11)]
    assert len(placed("warp 1, 3")) == 64


def test_ctas_may_be_listed_too() -> None:
    program = parse("PTX t\n{ }\nP@cta 0, 2, lane 0 { mov.u32 r0, 1; }\n", "t.litmus")
    assert [t.place.cta.rank if program.clustered else t.place.cta.cluster for t in program.threads] == [0, 2]


def test_a_kept_answer_is_that_of_the_included_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.inc").write_text("const V = 1;\n")
    test = tmp_path / "t.litmus"
    test.write_text(
        'PTX t\ninclude "c.inc";\n{ .global .u32 x; }\nP@cta 0 { st.weak.global.u32 [x], V; }\nexists (x == 1)\n'
    )
    arguments = ["run", str(test), "--cache", str(tmp_path / "kept")]
    assert main(arguments) == 0
    assert "pass" in capsys.readouterr().out
    (tmp_path / "c.inc").write_text("const V = 2;\n")
    assert main(arguments) == 0
    assert "fail" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", ".", "..", "a/b.inc", "a\\\\b.inc", "/etc/passwd", "c:x"])
def test_nothing_is_included_from_elsewhere(name: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(f'PTX t\n{{ }}\ninclude "{name}";\nP@cta 0 {{ mov.u32 r0, 1; }}\n', "t.litmus")
    assert caught.value.code == "LIT090"


def test_a_long_sum_may_be_an_argument() -> None:
    long = " + ".join(["%r1"] * 100)
    assert parse(
        f"PTX t\n{{ }}\ndef f(k) = k;\nP@cta 0 {{ mov.u32 r1, 1; if (f({long}) == 0) {{ mov.u32 r0, 1; }} }}\n",
        "t.litmus",
    ).threads
