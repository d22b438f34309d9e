"""The project's own modules: all are read, their launches fit, and every twin is one edit away from its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.modules import Case, cases
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module

CASES = list(cases())
MODULES = [case for case in CASES if not case.edits]
TWINS = [case for case in CASES if case.edits]
COMPILERS = ("cuda", "cute", "gluon", "tilelang", "triton")


def test_the_corpus_is_whole() -> None:
    folders = {case.path.parent.name for case in MODULES}
    assert folders == set(COMPILERS)
    assert len(MODULES) == 88
    assert len(TWINS) == 354
    known = {case.path.with_suffix(suffix) for case in MODULES for suffix in (".ptx", ".json", ".toml")}
    sources = (".cu", ".cuh", ".py")
    assert {p for p in MODULES[0].path.parent.parent.glob("*/*.*") if p.suffix not in sources} == known


def test_twins_have_names_of_their_own() -> None:
    assert len({case.label for case in CASES}) == len(CASES)


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("case", MODULES, ids=lambda case: case.label)
def test_modules_are_read_and_their_launches_fit(case: Case) -> None:
    read = parse_module(case.text(), str(case.path))
    found = build_launch(read, from_object(case.launch()))
    assert len(found.arguments) == len(case.launch()["params"])


@pytest.mark.daily
@pytest.mark.parametrize("case", TWINS, ids=lambda case: case.label)
def test_twins_are_read_and_have_lines_to_be_found_at(case: Case) -> None:
    text = case.text()
    original = case.path.read_text(encoding="utf-8")
    assert text != original
    assert text.count("\n") == original.count("\n")
    assert case.lines()
    parse_module(text, str(case.path))


@pytest.mark.parametrize("path", sorted({case.path for case in MODULES}), ids=lambda path: path.stem)
def test_modules_carry_nothing_of_the_machine_they_were_built_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 70_000
    assert "/" not in "".join(line for line in text.splitlines() if line.lstrip().startswith(".file"))
    assert " by " in text.splitlines()[0]
