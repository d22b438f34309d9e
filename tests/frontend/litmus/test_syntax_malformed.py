"""Malformed files and the exact error that each provokes; ``--promote`` rewrites the expectations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import load
from mcheck.frontend.litmus.codes import MESSAGES
from mcheck.report.errors import render

FOLDER = Path(__file__).parent / "malformed"
FILES = sorted(FOLDER.glob("*.litmus"))
UNPROVOKED = {
    "LIT001": "needs an unreadable file: test_unreadable",
    "LIT005": "needs a file of several megabytes: test_too_large",
}


def rendered(path: Path) -> str:
    """The error of ``path``, the folder left out of its path."""
    with pytest.raises(McheckError) as caught:
        load(str(path))
    assert caught.value.code, f"{path.name}: an error without a code"
    return render(caught.value).replace(f"{path.parent}/", "") + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_malformed(path: Path, promote: bool) -> None:
    golden = path.with_suffix(".expected")
    found = rendered(path)
    if promote:
        golden.write_text(found, encoding="utf-8")
    assert golden.exists(), f"{golden.name} is missing; run with --promote and read what comes out"
    assert found == golden.read_text(encoding="utf-8")


def test_enough_files() -> None:
    assert len(FILES) >= 60
    assert {path.stem for path in FOLDER.glob("*.expected")} == {path.stem for path in FILES}


def test_every_code_is_provoked() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.expected"))
    provoked = set(re.findall(r"^error\[(LIT\d+)\]", text, re.MULTILINE))
    assert set(MESSAGES) - provoked == set(UNPROVOKED)


def test_every_error_has_a_place() -> None:
    for path in FOLDER.glob("*.expected"):
        place = rf"--> ({re.escape(path.stem)}\.litmus|[\w-]+\.inc):\d"  # of the file or of one that it includes
        assert re.search(place, path.read_text(encoding="utf-8")), path.name


def test_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.litmus", tmp_path / "a\0b"):
        with pytest.raises(McheckError) as caught:
            load(str(path))
        assert caught.value.code == "LIT001"


def test_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.litmus"
    path.write_bytes(b"PTX large\n" + b" " * (9 << 20))
    with pytest.raises(McheckError) as caught:
        load(str(path))
    assert caught.value.code == "LIT005"
