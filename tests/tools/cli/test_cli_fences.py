"""``mcheck fences`` as a command: what it prints, and the program that it writes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.cli.conftest import Done

BUG = Path("litmus/kernels/A05-same-thread-without-proxy-fence.litmus")
FIXED = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")
MODULE = Path("tests/simt/corpus/cuda/cp_async_groups.ptx")
Run = Callable[..., Done]


def test_a_repair_is_printed_as_a_diff(mcheck: Run) -> None:
    done = mcheck("fences", BUG, "--timeout", "60")
    assert done.status == 1
    assert "    +  fence.proxy.async.shared::cta;\n" in done.out


def test_json_has_the_lines_that_change(mcheck: Run) -> None:
    (entry,) = json.loads(mcheck("fences", BUG, "--format", "json").out)["results"]
    first = entry["repairs"][0]
    assert first["edits"] == [{"line": 11, "insert": "fence.proxy.async.shared::cta;"}]
    assert first["verdict"] == "proved"
    assert (entry["verdict"], entry["removable"], entry["together"]) == ("finding", [], [])


def test_fix_writes_a_program_that_is_clean(mcheck: Run, tmp_path: Path) -> None:
    target = tmp_path / "mended.litmus"
    assert mcheck("fences", BUG, "--fix", "-o", target).status == 1
    assert "fence.proxy.async.shared::cta;\n" in target.read_text()
    assert target.read_text().endswith("expect clean\n")
    assert mcheck("check", target).status == 0


def test_fix_leaves_out_what_a_clean_program_does_not_need(mcheck: Run, tmp_path: Path) -> None:
    fence = "fence.proxy.async.shared::cta;"
    source, target = tmp_path / "twice.litmus", tmp_path / "once.litmus"
    source.write_text(FIXED.read_text().replace(fence, f"{fence}\n  {fence}"))
    assert mcheck("fences", source, "--fix", "-o", target).status == 0
    assert target.read_text().count(fence) == 1


def test_the_program_itself_is_overwritten_only_if_asked(mcheck: Run, tmp_path: Path) -> None:
    source = tmp_path / "bug.litmus"
    source.write_text(BUG.read_text())
    refused = mcheck("fences", source, "--fix", "-o", source)
    assert (refused.status, source.read_text()) == (2, BUG.read_text())
    assert "--overwrite" in refused.err
    assert mcheck("fences", source, "--fix", "-o", source, "--overwrite").status == 1
    assert source.read_text() != BUG.read_text()


@pytest.mark.daily(days=3, least=0)
def test_all_checks_are_under_the_given_model(mcheck: Run, tmp_path: Path) -> None:
    model = tmp_path / "nothing-races.cat"
    model.write_text("acyclic po as Order\n")
    fence = "fence.proxy.async.shared::cta;"
    assert f"{fence} is needed" in mcheck("fences", FIXED).out
    assert f"{fence} is needed" not in mcheck("fences", FIXED, "--model", model).out
    refused = mcheck("fences", FIXED, "--model", "nope")
    assert (refused.status, refused.out) == (2, "")
    assert "unknown model nope" in refused.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((BUG, "--fix"), "-o FILE"),
        ((BUG, "-o", "x.litmus"), "--fix"),
        ((BUG, FIXED, "--fix", "-o", "x.litmus"), "one program"),
        ((MODULE.with_suffix(".cu"), "--fix", "-o", "x.cu"), "source"),
        ((BUG, "--costs", "no-such-file.toml"), "cannot be read"),
        ((BUG, "--fix", "-o", "no-such-folder/x.litmus"), "no-such-folder"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused(mcheck: Run, words: tuple[object, ...], why: str) -> None:
    done = mcheck("fences", *words)
    assert done.status == 2
    assert why in done.err
    assert done.out == ""


@pytest.mark.daily(days=3, least=0)
def test_the_answer_does_not_depend_on_the_processes(mcheck: Run) -> None:
    alone, beside = (mcheck("fences", "-j", jobs, "--format", "json", FIXED) for jobs in (1, 2))
    assert alone.status == beside.status == 0
    assert json.loads(alone.out) == json.loads(beside.out)
    assert json.loads(alone.out)["results"][0]["needed"]


@pytest.mark.daily(least=0)
def test_the_launch_of_a_module_may_be_given(mcheck: Run, tmp_path: Path) -> None:
    copy = tmp_path / "groups.ptx"
    shutil.copy(MODULE, copy)
    without = mcheck("fences", "-j", 1, copy)
    assert without.status == 2
    given = mcheck("fences", "-j", 1, "--launch", MODULE.with_suffix(".json"), copy)
    assert given.status == 0
    assert "  cp_async_groups.cu:21: cp.async.wait_group 1; is needed: RACE003 (lines " in given.out
