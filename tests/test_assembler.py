"""What the assembler has said of a text is not asked again, and nothing else is taken for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.assembler import Assembler

PROGRAM = """#!/bin/sh
echo "$@" >> "{log}"
for source; do case $source in *.ptx) cat "$source";; esac; done
exit 3
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """The file with a line for each time that the program at ``program`` ran."""
    (tmp_path / "program").write_text(PROGRAM.format(log=tmp_path / "asked"), encoding="utf-8")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "kept").mkdir()
    (tmp_path / "asked").touch()
    return tmp_path / "asked"


def test_an_answer_is_kept_by_version_options_and_text(asked: Path) -> None:
    one = Assembler(asked.with_name("program"), "13.0", asked.with_name("kept"))
    for _ in range(2):
        assert one.assemble("a text", "-arch", "sm_90a") == (3, "a text")
        assert one.assemble("another", "-arch", "sm_90a") == (3, "another")
    assert len(asked.read_text().splitlines()) == 2
    one.assemble("a text", "-arch", "sm_80")
    replace(one, version="13.1").assemble("a text", "-arch", "sm_90a")
    assert len(asked.read_text().splitlines()) == 4
    assert len(list(asked.with_name("kept").iterdir())) == 4


def test_without_a_folder_nothing_is_kept(asked: Path) -> None:
    one = Assembler(asked.with_name("program"), "13.0", None)
    assert one.assemble("a text") == one.assemble("a text") == (3, "a text")
    assert len(asked.read_text().splitlines()) == 2
