"""Defaults of options from mcheck.toml and pyproject.toml."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RACE = """PTX race
{ .shared .u32 x; }
P@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; }
Q@cta 0, warp 1, lane 0 { st.shared.u32 [x], 2; }
"""

Mcheck = Callable[..., Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels" / "deep" / "race.litmus"
    path.parent.mkdir(parents=True)
    path.write_text(RACE)
    return path


def project(file: Path, text: str, name: str = "pyproject.toml") -> Path:
    path = file.parents[2] / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("pyproject.toml", '[tool.mcheck]\nignore = ["RACE"]\n'), ("mcheck.toml", 'ignore = ["RACE"]\n')],
)
def test_a_file_above_the_path_counts(file: Path, mcheck: Mcheck, name: str, text: str) -> None:
    assert mcheck("check", file).status == 1
    project(file, text, name)
    assert mcheck("check", file).status == 0
    assert mcheck("check", file.parent).status == 0


def test_the_command_line_wins(file: Path, mcheck: Mcheck) -> None:
    project(file, '[tool.mcheck]\nignore = ["RACE"]\nmodel = "sc"\n')
    assert mcheck("check", file, "--ignore", "UB", "--model", "ptx-9.0").status == 1
    assert json.loads(mcheck("check", file, "--format", "json").out)["model"] == "sc"
    assert json.loads(mcheck("check", file, "--format", "json", "--model", "ptx-9.3").out)["model"] == "ptx-9.3"


def test_the_nearest_file_counts_and_others_are_passed_over(file: Path, mcheck: Mcheck) -> None:
    project(file, '[tool.mcheck]\nignore = ["RACE"]\n')
    (file.parent / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert mcheck("check", file).status == 0
    (file.parent / "pyproject.toml").write_text("[tool.mcheck]\n")
    assert mcheck("check", file).status == 1


def test_the_working_directory_counts_if_the_path_has_none(
    file: Path, tmp_path_factory: pytest.TempPathFactory, mcheck: Mcheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("here")
    (here / "mcheck.toml").write_text('ignore = ["RACE"]\n')
    monkeypatch.chdir(here)
    assert mcheck("check", file).status == 0


def test_paths_are_relative_to_the_file(file: Path, mcheck: Mcheck, monkeypatch: pytest.MonkeyPatch) -> None:
    project(file, '[tool.mcheck]\nbaseline = "known.json"\n')
    monkeypatch.chdir(file.parent)
    assert mcheck("check", "race.litmus", "--write-baseline", "../../known.json").status == 0
    assert mcheck("check", "race.litmus").status == 0
    assert mcheck("check", "race.litmus", "--update-baseline").status == 0


def test_warnings_are_errors_of_run(file: Path, mcheck: Mcheck) -> None:
    file.write_text("PTX w\n{ x = 0; }\n P0 ;\n ld.weak.u32 r0, [x] ;\nlocations [y]\nexists (P0:r0 == 0)\n")
    before = mcheck("run", file).status
    project(file, "[tool.mcheck]\nwarnings-as-errors = true\n")
    assert mcheck("run", file).status == mcheck("run", file, "-W").status >= before
    assert mcheck("check", file).status != 70


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("# comment\n[tool.mcheck]\nmodel = 'sc'\ntimout = 3\n", 4, "Did you mean timeout?"),
        ("[tool.mcheck]\nwarnings_as_errors = true\n", 2, "Did you mean warnings-as-errors?"),
        ("[tool.other]\ntimeout = 'x'\n[tool.mcheck]\ntimeout = 'long'\n", 4, "a number"),
        ("[tool.mcheck]\nselect = 'RACE'\n", 2, "a list of names"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(file: Path, mcheck: Mcheck, text: str, line: int, said: str) -> None:
    path = project(file, text)
    done = mcheck("check", file)
    assert done.status == 2
    assert f"{path.name}:{line}:1" in done.err
    assert said in done.err


@pytest.mark.parametrize("text", ["[tool.mcheck]\nprofile = 'loose'\n", "[tool.mcheck]\ntimeout = -1\n"])
def test_values_that_an_option_refuses_name_the_file(file: Path, mcheck: Mcheck, text: str) -> None:
    project(file, text)
    done = mcheck("check", file)
    assert done.status == 2
    assert "pyproject.toml)" in done.err


def test_what_is_no_toml(file: Path, mcheck: Mcheck) -> None:
    project(file, "[tool.mcheck]\nmodel =\n")
    assert "is not valid TOML" in mcheck("check", file).err
