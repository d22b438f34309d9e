"""A word that several threads update by a load and a store: the fix is an atomic, in the words of the language."""

from __future__ import annotations

import re

import pytest

from benchmarks.launch_corpus import FOLDER
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx.launch_reader import from_object, from_text
from mcheck.report import checked
from mcheck.report.lines import plain

UPDATE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .f32 %f<9>; .reg .b64 %rd<9>;
  .shared .align 4 .b8 tile[64];
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; mov.u32 %r2, tile;
  ld.global.f32 %f1, [%rd3]; cvt.rzi.s32.f32 %r3, %f1;
  CODE
  ret;
}
"""
GLOBAL = "ld.global.f32 %f2, [%rd1]; HOW st.global.f32 [%rd1], %f3;"
SHARED = "ld.shared.u32 %r4, [%r2]; HOW st.shared.u32 [%r2], %r5;"
LOOP = " in a loop by an atomic, "


def check(code: str, grid: int = 1, block: int = 64) -> Result:
    launch = {"entry": "k", "grid": grid, "block": block, "params": {"out": {"buffer": 4}, "in": {"buffer": 4096}}}
    return check_text(UPDATE.replace("CODE", code), "k.ptx", from_object(launch), Settings(), Options())


def told(result: Result) -> list[str]:
    return [plain(line) for line in checked.describe(result)]


def fix_of(result: Result) -> str:
    return next(line.partition("= fix: ")[2] for line in told(result) if "= fix: " in line)


@pytest.mark.parametrize(
    ("code", "how", "atomic"),
    [
        (GLOBAL, "add.f32 %f3, %f1, %f2;", " by an atomic, atom.relaxed.gpu.global.add.f32, "),
        (GLOBAL, "sub.f32 %f3, %f2, %f1;", " by an atomic, atom.relaxed.gpu.global.add.f32, "),
        (GLOBAL, "sub.f32 %f3, %f1, %f2;", LOOP + "atom.relaxed.gpu.global.cas, "),
        (GLOBAL, "fma.rn.f32 %f3, %f1, %f1, %f2;", " by an atomic, atom.relaxed.gpu.global.add.f32, "),
        (GLOBAL, "fma.rn.f32 %f3, %f1, %f2, %f1;", LOOP + "atom.relaxed.gpu.global.cas, "),
        (GLOBAL, "max.f32 %f3, %f1, %f2;", LOOP + "atom.relaxed.gpu.global.cas, "),
        (SHARED, "max.s32 %r5, %r3, %r4;", " by an atomic, atom.relaxed.gpu.shared.max.s32, "),
        (SHARED, "or.b32 %r5, %r4, %r3;", " by an atomic, atom.relaxed.gpu.shared.or.b32, "),
        (SHARED, "mov.u32 %r6, %r4; add.s32 %r5, %r6, %r3;", " by an atomic, atom.relaxed.gpu.shared.add.s32, "),
    ],
)
def test_the_atomic_that_does_the_same(code: str, how: str, atomic: str) -> None:
    found = check(code.replace("HOW", how))
    assert {f.code for f in found.findings} == {"RACE001"}
    assert f"{atomic}instead of by the load and the store at line 10: of two updates" in fix_of(found)
    assert told(found)[-2].startswith("  1 bug") or len(found.findings) == 1


@pytest.mark.parametrize(
    ("code", "atomic"),
    [
        (GLOBAL.replace("HOW", "add.f32 %f3, %f1, %f2;"), "red.relaxed.gpu.global.add.f32 [%rd1], %f1;"),
        (SHARED.replace("HOW", "max.s32 %r5, %r3, %r4;"), "red.relaxed.gpu.shared.max.s32 [%r2], %r3;"),
    ],
)
def test_the_fix_mends_it(code: str, atomic: str) -> None:
    assert check(code).verdict == "finding"
    assert check(atomic).verdict == "proved"


def test_a_copy_or_another_word_is_no_update() -> None:
    for how in ("mov.f32 %f3, %f2;", "mov.f32 %f3, %f1;"):
        assert "atomic" not in fix_of(check(GLOBAL.replace("HOW", how)))
    other = GLOBAL.replace("HOW", "add.f32 %f3, %f1, %f2;").replace("[%rd1];", "[%rd2];")
    assert "atomic" not in fix_of(check(other))


def test_threads_that_store_the_same_need_a_barrier() -> None:
    """All make the same of what they read: behind a barrier nothing is lost."""
    found = check(GLOBAL.replace("HOW", "add.f32 %f3, %f2, %f2;\n"))
    assert fix_of(found) == "bar.sync 0 after line 10, in every thread of the CTA"
    assert check(GLOBAL.replace("HOW", "add.f32 %f3, %f2, %f2;\n bar.sync 0;")).verdict == "proved"


def test_one_thread_that_stores_needs_a_barrier() -> None:
    """The others leave the value: only where CTAs do so as well are updates lost, and that is what is told."""
    once = (
        "setp.eq.u32 %p1, %r1, 0; ld.global.f32 %f2, [%rd1];\n add.f32 %f3, %f1, %f2; BAR @%p1 st.global.f32 [%rd1], "
    )
    once += "%f3;"
    alone = check(once.replace("BAR", ""))
    assert fix_of(alone) == "bar.sync 0 after line 10, in every thread of the CTA"
    assert any("stores nothing made of the value that it reads, so that this" in line for line in told(alone))
    assert check(once.replace("BAR", "bar.sync 0;")).verdict == "proved"
    several = check(once.replace("BAR", ""), grid=4)
    assert "by an atomic, atom.relaxed.gpu.global.add.f32" in fix_of(several)
    assert any(re.search(r"CTA \(1, 0, 0\) writes", line) for line in told(several))
    assert told(several)[-2].startswith("  1 bug (")
    both = check(once.replace("BAR", "bar.sync 0;"), grid=4)
    assert "by an atomic, atom.relaxed.gpu.global.add.f32" in fix_of(both)


def test_a_total_of_programs_in_triton() -> None:
    home = FOLDER / "triton_total"
    launch = (home / "launch.json").read_text(encoding="utf-8")
    path = str(home / "twin1.ptx")
    text = (home / "twin1.ptx").read_text(encoding="utf-8")
    found = check_text(text, path, from_text(launch, path), Settings(), Options())
    said = told(found)
    assert said[0].endswith("(1 of 4 programs)")
    assert any(line.endswith("^ program (1, 0, 0) writes total_param_1[bytes 0..4]") for line in said)
    assert any(line.endswith("- program (0, 0, 0) reads total_param_1[bytes 0..4]") for line in said)
    assert fix_of(found) == (
        "Update `total_param_1` by an atomic, atom.relaxed.gpu.global.add.f32 (`tl.atomic_add()`), instead of by the "
        "load and the store at line 15: of two updates at the same time one is lost"
    )
    assert said[-2] == "  1 bug (3 findings): RACE001"
    assert not any(re.search(r"\bCTA|cluster", line) for line in said if " | " not in line)
