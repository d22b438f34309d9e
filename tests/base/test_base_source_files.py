"""The names under which source files are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.source_files import SourceText


@pytest.mark.parametrize(
    ("program", "shown"),
    [("k.ptx", "k.cuh"), ("elsewhere/k.ptx", "k.cuh"), ("here/k.ptx", "here/k.cuh"), (None, "k.cuh")],
)
def test_a_source_below_the_working_directory_has_a_short_name_unless_a_program_there_has_its_full_one(
    program: str | None, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler gives headers their full names, and a compiled module may lie in a cache."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "k.cuh").write_text("int x;\n")
    monkeypatch.chdir(here)
    path = str(tmp_path / program) if program is not None and "/" in program else program
    wanted = str(tmp_path / shown) if "/" in shown else shown
    assert SourceText(path=path).name(str(here / "k.cuh")) == wanted
