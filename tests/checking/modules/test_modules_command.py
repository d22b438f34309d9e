"""``mcheck check`` and ``mcheck.ptx.check`` on modules: statuses, reports, launches, options, bad input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcheck import ptx
from mcheck.base.errors import InputError
from mcheck.tools.cli.main import main

HAND_OVER = (Path(__file__).parents[2] / "simt" / "hand_over.ptx").read_text(encoding="utf-8")
FENCE = "\tfence.proxy.async.shared::cta;\n"
RACY = HAND_OVER.replace(FENCE, "")
LAUNCH: dict[str, Any] = {"grid": [1], "params": {"out": {"buffer": 256}, "rows": 1}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the modules and a launch, which is the working directory."""
    (tmp_path / "hand_over.ptx").write_text(HAND_OVER)
    (tmp_path / "racy.ptx").write_text(RACY)
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["check", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def put(folder: Path, old: str, new: str) -> str:
    """A module in which something is replaced."""
    assert old in HAND_OVER
    (folder / "changed.ptx").write_text(HAND_OVER.replace(old, new))
    return "changed.ptx"


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("covered", "verdict"), [(True, "ignored"), (False, "bounded")])
def test_what_is_left_out_beside_executions_that_were_not_run_is_not_proved(
    covered: bool, verdict: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcheck.checking.modules import answer

    real = answer.ask
    monkeypatch.setattr(answer, "ask", lambda *given: replace(real(*given), covered=covered))
    _, out, _ = run(capsys, "racy.ptx", "--launch", "launch.json", "--ignore", "RACE")
    assert out.startswith(f"{verdict} ")


@pytest.mark.usefixtures("folder")
def test_a_module_with_its_launch(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "hand_over.ptx", "--launch", "launch.json", "-v")
    assert status == 0
    assert out.startswith("clean     hand_over.ptx (proved)")
    assert "entry hand_over, grid 1, 1, 1, block 64, 1, 1, cluster 1, 1, 1" in out


@pytest.mark.usefixtures("folder")
def test_a_finding_at_its_line_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "racy.ptx", "--launch", "launch.json", "-v")
    store = RACY.split("\n").index("\tst.shared.u32 \t[%r4], %r2;") + 1
    assert status == 1
    assert "error[RACE004]" in out
    assert f"--> racy.ptx:{store}:2\n" in out
    assert "from tile.cuh:12:5, inlined in hand_over.cu:5:3\n" in out


@pytest.mark.usefixtures("folder")
def test_options_are_enough_and_win_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--grid", "2,1", "--block", "64", "--param", "rows=0x1", "--param", 'out={"buffer": 256}')
    named = ("--entry", "hand_over", "--cluster", "1", "--shared", "16")
    status, out, _ = run(capsys, "hand_over.ptx", *options, *named, "-v")
    assert status == 1  # both clusters write the same bytes, by copies
    assert "error[RACE003]" in out
    assert "the async write by cta(0, 0, 0).warp0[0]" in out
    assert "the async write by cta(1, 0, 0).warp0[0]" in out
    assert "grid 2, 1, 1" in out
    assert "16 bytes of dynamic shared memory" in out
    assert run(capsys, "racy.ptx", "--launch", "launch.json", "--param", "rows=0")[0] == 0


@pytest.mark.usefixtures("folder")
def test_reports_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("racy.ptx", "--launch", "launch.json", "--format")
    result = json.loads(run(capsys, *arguments, "json")[1])["results"][0]
    assert (result["path"], result["name"], result["verdict"]) == ("racy.ptx", "hand_over", "finding")
    write = result["findings"][0]["accesses"][0]
    assert write["source"] == [
        {"path": "tile.cuh", "line": 12, "column": 5}, {"path": "hand_over.cu", "line": 5, "column": 3},
    ]  # fmt: skip
    assert any("one cluster" in assumption for assumption in result["assumptions"])
    sarif = json.loads(run(capsys, *arguments, "sarif")[1])["runs"][0]["results"][0]
    files = [r["physicalLocation"]["artifactLocation"]["uri"] for r in sarif["relatedLocations"]]
    assert files == ["racy.ptx", "racy.ptx", "tile.cuh", "hand_over.cu", "hand_over.cu"]
    assert ET.fromstring(run(capsys, *arguments, "junit")[1]).find(".//failure") is not None
    assert "compiled from tile.cuh:12:5" in run(capsys, *arguments, "github")[1]


def test_a_finding_may_be_suppressed_in_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = put(folder, FENCE, "// mcheck: ignore RACE004 the host waits\n")
    lines = (folder / name).read_text().split("\n")
    at = next(k for k, line in enumerate(lines) if "st.shared" in line)
    lines[at] += " // mcheck: ignore RACE004 for the test"
    (folder / name).write_text("\n".join(lines))
    status, out, _ = run(capsys, name, "--launch", "launch.json")
    assert (status, "ignored   " in out, "no finding except 1 ignored: RACE004" in out) == (0, True, True)
    assert "RACE004 is suppressed" in run(capsys, name, "--launch", "launch.json", "-v")[1]


TENSOR = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry loads(.param .align 64 .b8 tm[128], .param .u32 rows) .reqntid 1
{
  .reg .pred %p1;
  .reg .b32 %r1;
  .reg .b64 %rd<3>;
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 full;
  mov.b64 %rd1, tm;
  cvta.param.u64 %rd2, %rd1;
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
  mov.b32 %r1, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2, {%r1, %r1}], [full];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
  @!%p1 bra WAIT;
  ret;
}
"""


@pytest.mark.parametrize("given", [{}, {"tm": {"tensormap": {}}}])
def test_a_tensor_map_that_a_copy_needs_is_asked_for(given: dict[str, Any]) -> None:
    found = ptx.check(TENSOR, {"grid": [1], "params": given})
    assert found.verdict == "error"
    assert isinstance(found.problem, InputError)
    assert found.problem.hint == "give 'tm' in the launch"
    assert "cp.async.bulk.tensor.2d" in found.problem.message


def test_a_tensor_map_that_is_given_as_bytes_is_not_known() -> None:
    found = ptx.check(TENSOR, {"grid": [1], "params": {"tm": {"hex": "00" * 128}}})
    assert (found.verdict, found.findings) == ("unknown", ())
    assert "as bytes, not by its fields" in (found.reason or "")


# --- what is missing or wrong -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_what_is_missing_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = run(capsys, "hand_over.ptx")
    assert status == 2
    assert "the launch does not give grid" in error
    assert "hand_over.ptx:8" in error


def test_a_buffer_that_no_memory_holds_is_shown_in_the_launch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "launch.json").write_text('{"grid": 1, "params": {"rows": 1,\n "out": {"buffer": 1099511627776}}}')
    status, _, err = run(capsys, "hand_over.ptx", "--launch", "launch.json")
    assert status == 2
    assert "larger than the memory that mcheck models\n  --> launch.json:2:" in err


@pytest.mark.usefixtures("folder")
def test_a_parameter_that_decides_is_named_with_the_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = run(capsys, "hand_over.ptx", "--grid", "1", "--param", 'out={"buffer": 256}')
    assert status == 2
    assert "@%p1 bra" in error
    assert "rows" in error


def test_a_parameter_that_is_given_in_part_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = put(folder, "\t.param .u32 rows", "\t.param .align 4 .b8 rows[8]")
    status, _, error = run(
        capsys, module, "--grid", "1", "--param", 'rows={"hex": "", "at": {"4": {"hex": "00000000"}}}'
    )
    assert status == 2
    assert "hint: give all bytes of 'rows' in the launch" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--grid", "many"), "--grid is not a valid extent"),
        (("--block", "32"), ".reqntid 64, 1, 1"),
        (("--param", "rows"), "NAME=VALUE"),
        (("--param", "row=1"), "did you mean rows?"),
        (("--entry", "other"), "no entry other"),
        (("--launch", "nowhere.json"), "cannot read nowhere.json"),
        (("--shared", "-1"), "--shared is not a valid size"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_option_is_an_error(arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, error = run(capsys, "hand_over.ptx", "--grid", "1", *arguments)
    assert status == 2
    assert says in error


def test_a_launch_that_lies_beside_its_module_is_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "racy.json").write_text(json.dumps(LAUNCH))
    assert run(capsys, "racy.ptx", "-q")[0] == 1
    assert ptx.check("racy.ptx").verdict == "finding"
    assert ptx.check(RACY).verdict == "error", "a text has no place"
    status, _, error = run(capsys, "racy.ptx", "--block", "64")
    assert status == 2, "options say all of it, or none"
    assert "the launch does not give grid" in error
    (folder / "racy.json").write_text('{"grid": 1, "hash": 7}')
    status, _, error = run(capsys, "racy.ptx")
    assert status == 2
    assert "racy.json:1:" in error


def test_modules_of_a_folder_are_checked_where_their_launch_lies_beside_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(capsys, ".")
    assert status == 2
    assert error == "error: no .litmus file in ., and no launch file beside hand_over.ptx, racy.ptx\n"
    (folder / "racy.json").write_text(json.dumps(LAUNCH))
    (folder / "test.litmus").write_text("PTX a\n{ }\nP@cta 0 { bar.sync 0; }\n")
    status, out, error = run(capsys, ".", "-v")
    assert status == 1
    assert error.startswith("warning: no launch file beside hand_over.ptx: skipped\n")
    assert "race      racy.ptx" in out
    assert "2 files: 1 proved, 1 with findings" in out


def test_answers_about_modules_are_kept_with_their_launch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answers() -> str:
        assert main(["cache", "kept"]) == 0
        return capsys.readouterr().out.split(":")[1].split(",")[0].strip()

    (folder / "racy.json").write_text(json.dumps(LAUNCH))
    first = run(capsys, "racy.ptx", "--cache", "kept")
    assert answers() == "1 answer"
    assert run(capsys, "racy.ptx", "--cache", "kept") == first
    assert answers() == "1 answer"
    (folder / "racy.json").write_text(json.dumps({**LAUNCH, "params": {"rows": 0}}))
    assert run(capsys, "racy.ptx", "--cache", "kept")[0] == 0
    assert run(capsys, "racy.ptx", "--cache", "kept", "--launch", "launch.json")[0] == 1
    assert answers() == "3 answers"


def test_a_launch_is_for_modules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "test.litmus").write_text("PTX a\n{ }\nP@cta 0 { bar.sync 0; }\n")
    assert run(capsys, "test.litmus", "--grid", "1")[0] == 2


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("sm_90a", "sm_52", "unknown target 'sm_52'"),
        ("sm_90a", "sm_80", "needs sm_90 or higher; the target is sm_80"),
        (".address_size 64", ".address_size 32", "32-bit addresses"),
        ("\tret;\n}", "\tret;\n", "the body of hand_over, which begins at line"),
        ("%r3, tile;", "%r3, tiles;", "did you mean tile?"),
    ],
)
def test_a_module_that_cannot_be_taken(
    old: str, new: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, error = run(capsys, put(folder, old, new), "--launch", "launch.json")
    assert status in (2, 3)
    assert says in out + error


def test_an_instruction_without_a_model_matters_where_it_is_executed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instruction = "\tsust.b.1d.b32.trap [%rd1, {%r2}], %r2;\n"
    dead = put(folder, "$L__done:\n", f"\tbra $L__done;\n{instruction}$L__done:\n")
    assert run(capsys, dead, "--launch", "launch.json")[0] == 0
    live = put(folder, FENCE, FENCE + instruction)
    status, out, error = run(capsys, live, "--launch", "launch.json")
    assert status == 3
    assert "sust" in out + error


def test_a_parameter_that_is_every_number() -> None:
    """Where control depends on it a loop is looked for, and the first numbers are tried: the race is there from one row
    on.
    """
    every = {**LAUNCH, "params": {**LAUNCH["params"], "rows": "any"}}
    found = ptx.check(RACY, every)
    assert found.verdict == "finding"
    assert found.findings[0].message.endswith(", with rows = 1")
    clean = ptx.check(HAND_OVER, every)
    assert clean.verdict == "unknown"
    assert clean.reason is not None
    assert clean.reason.startswith(
        "rows is any number: nothing was found with 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 40"
    )
    assert clean.reason.endswith("not proved safe (no loop runs more often with a larger rows)")


# --- from Python --------------------------------------------------------------------------------------------------


def test_check_takes_texts_and_paths(folder: Path) -> None:
    assert ptx.check(HAND_OVER, LAUNCH).verdict == "proved"
    found = ptx.check(folder / "racy.ptx", folder / "launch.json")
    assert found.verdict == "finding"
    assert [f.code for f in found.findings if f.severity == "error"] == ["RACE004"]
    ignored = ptx.check(RACY, LAUNCH, ignore=("RACE",), timeout=60)
    assert (ignored.verdict, ignored.headline, ignored.status) == ("finding", "ignored", "ok")


@pytest.mark.usefixtures("folder")
def test_check_returns_as_objects_what_the_report_holds(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "racy.ptx", "--launch", "launch.json", "--format", "json")
    told = json.loads(out)["results"][0]["findings"][0]
    found = ptx.check("racy.ptx", "launch.json").findings[0]
    assert {"document": found.spec.document, "section": found.spec.section} == told["spec"]
    for access, one in zip(found.accesses, told["accesses"], strict=True):
        for name in ("thread", "path", "line", "column", "instruction", "object", "proxy", "access"):
            assert getattr(access, name) == one[name]
        assert list(access.bytes) == one["bytes"]


def test_check_raises_nothing() -> None:
    for text, launch in (
        (HAND_OVER, {"grid": 0}),
        (HAND_OVER, "nowhere.json"),
        ("nowhere.ptx", None),
        (".version", {}),
    ):
        found = ptx.check(text, launch)
        assert found.verdict == "error"
        assert found.problem is not None
    assert ptx.check(HAND_OVER, {"grid": object()}).verdict == "error"
