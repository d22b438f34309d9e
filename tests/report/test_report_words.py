"""What is shown where a newcomer looks first: unknown contents, wide values, a test that asks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.answers.number_text import MEANING, format_contents
from mcheck.checking.policy.executions import executions
from mcheck.checking.policy.question import Question
from mcheck.checking.run.single import load_model, load_program
from mcheck.report.trace import abridge_registers
from mcheck.tools.cli.main import main

UNWRITTEN = """PTX unwritten
{ .shared .u32 buf; }
P@cta 0 { ld.shared.u32 r0, [buf]; st.shared.u32 [buf], 1; }
Q@cta 0 { ld.shared.u32 r0, [buf]; st.shared.u32 [buf], 1; }
exists (P:r0 == 1)
"""
COPIED = """PTX copied
{
  .global .align 16 .u32 src[8] = {7, 7, 7, 7, 7, 7, 7, 7};
  .shared .align 16 .u32 buf[8];
  .shared .b64 full;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 32, [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  ld.shared.u32 r0, [buf];
}
exists (P:r0 == 7)
"""
SKETCH = """PTX sketch
{ .shared .u32 buf[32]; }
P@cta 0, warp 0 { st.shared.u32 [buf + 4*%laneid], 1; bar.sync 0; }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("unwritten", UNWRITTEN), ("copied", COPIED), ("sketch", SKETCH)):
        Path(f"{name}.litmus").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [["run", "-v"], ["outcomes"]])
def test_unknown_is_explained_once(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*command, "unwritten.litmus"])
    assert capsys.readouterr().out.count(MEANING) == 1
    main([*command, "copied.litmus"])
    assert MEANING not in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_wide_values_are_elements(capsys: pytest.CaptureFixture[str]) -> None:
    main(["outcomes", "copied.litmus"])
    assert "reads src = {7 x8} from the initial value" in capsys.readouterr().out
    program = load_program("copied.litmus")
    shown = executions(program, load_model("ptx-9.0"), Question(), forbidden=0, drawn=1)
    (execution,) = shown.allowed.values()
    assert "R src = {7 x8}" in [line for box in execution.boxes for line in box.lines]


@pytest.mark.parametrize(
    ("value", "size", "unit", "text"),
    [
        (5, 4, 4, "5"),
        (1 << 40, 8, 8, "0x10000000000"),
        (0, 16, 4, "{0, 0, 0, 0}"),
        (0x0000000200000001, 16, 4, "{1, 2, 0, 0}"),
        (3, 16, 8, "{3, 0}"),
        (1, 128, 1, "{1, 0 x31}"),
        (0x010203, 9, 1, "{3, 2, 1, 0 x6}"),
        (sum((k % 9) << 32 * k for k in range(9)), 36, 4, "{0, 1, 2, 3, 4, 5, and 3 more}"),
        (None, 16, 4, "unknown"),
    ],
)
def test_contents(value: int | None, size: int, unit: int, text: str) -> None:
    assert format_contents(value, size, unit) == text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [["run", "-v"], ["outcomes"]])
def test_a_test_that_names_nothing(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*command, "sketch.litmus"])
    shown = capsys.readouterr()
    assert "the test names no registers or locations: add a line such as `exists (P:r0 == 1)`" in shown.out
    assert "0 states" not in shown.out
    assert "stopped early" not in shown.err


@pytest.mark.usefixtures("folder")
def test_a_picture_wants_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outcomes", "copied.litmus", "--graph", "1"]) == 2
    typed = "mcheck outcomes copied.litmus --graph 1 -o outcome-1.svg"
    assert typed in capsys.readouterr().err
    assert main(typed.split()[1:]) == 0
    assert Path("outcome-1.svg").exists()


REPLACED = """PTX forbidden-with-unwritten-contents
{ x = 0; y = 0; .shared .u32 s; }
P@cta 0 {
  ld.shared.u32 r2, [s];
  st.shared.u32 [s], 1;
  st.relaxed.cta.global.u32 [x], 1;
  ld.relaxed.cta.global.u32 r0, [x];
}
Q@cta 0 { st.shared.u32 [s], 1; }
exists (P:r0 == 0)
"""


def test_what_forbids_a_state_is_shown_without_unwritten_contents(tmp_path: Path) -> None:
    path = tmp_path / "replaced.litmus"
    path.write_text(REPLACED, encoding="utf-8")
    shown = executions(load_program(str(path)), load_model("ptx-9.0"), Question(), forbidden=1, drawn=0)
    (forbidden,) = shown.forbidden
    assert forbidden.execution is not None
    assert not [line for box in forbidden.execution.boxes for line in box.lines if "unknown" in line]


def test_an_index_without_expectations(folder: Path) -> None:
    Path("racy.litmus").write_text(SKETCH.replace(" + 4*%laneid], 1", "], %laneid"), encoding="utf-8")
    main(["doc", "racy.litmus", "-o", "site"])
    index = (folder / "site" / "index.html").read_text(encoding="utf-8")
    assert "RACE002" in index or "RACE001" in index
    assert "not as expected" not in index


def test_long_lists_of_registers_are_told_by_their_ends() -> None:
    registers = ", ".join(f"%f{k}" for k in range(64))
    assert (
        abridge_registers(f"wgmma.mma_async {{{registers}}}, %rd1, %rd2")
        == "wgmma.mma_async {%f0, …, %f63}, %rd1, %rd2"
    )
    short = "tcgen05.ld {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%r8]"
    assert abridge_registers(short) == short
    several = "cp.async.bulk.tensor.2d [buf], [map, {0, 0}], [full]"
    assert abridge_registers(several) == several
