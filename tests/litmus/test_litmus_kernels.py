"""The kernel sketches: index, twins and sources are complete, and the protocol engine answers as the index says."""

from __future__ import annotations

import csv
import difflib
import importlib.util
import json
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from mcheck.frontend.litmus import load

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "litmus" / "kernels"
CORPUS = ROOT.parent / "shared" / "corpus"
ENTRIES = list(csv.DictReader((KERNELS / "index.csv").read_text(encoding="utf-8").splitlines()))
VERDICTS = {"race": "race", "stale": "race", "ub": "undefined", "deadlock": "deadlock"}
OPEN: dict[str, str] = {}
"""Sketches about which the engine is wrong, and how; an entry goes when the engine is right."""
NAME = re.compile(r"[A-Z]\d\d-[a-z0-9]+(-[a-z0-9]+)*\.litmus")


@cache
def benchmark() -> ModuleType:
    """``benchmarks/kernels.py``, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("benchmarks_kernels", ROOT / "benchmarks" / "kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def named(entry: dict[str, str]) -> str:
    return entry["file"]


def test_the_index_names_every_file() -> None:
    """No sketch outside the index, no row without its files, no file twice."""
    files = [entry[column] for entry in ENTRIES for column in ("file", "twin") if entry[column]]
    assert sorted(files) == sorted(path.name for path in KERNELS.glob("*.litmus"))


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_row_and_file_agree(entry: dict[str, str]) -> None:
    """Names, expectation and source; the lines of the index hold instructions; a bug has its twin beside it."""
    path = KERNELS / entry["file"]
    program = load(str(path))
    assert NAME.fullmatch(entry["file"])
    assert entry["file"].startswith(entry["id"] + "-")
    assert ",".join("|".join(line) for line in program.expectation.kinds) == entry["expected"]
    assert any("Source: https://" in line for line in program.doc)
    text = path.read_text(encoding="utf-8").splitlines()
    lines = [int(n) for n in re.findall(r"\d+", entry["lines"])]
    assert all(text[n - 1].startswith("  ") and text[n - 1].endswith(";") for n in lines)
    is_bug = entry["corpus"] == "bug"
    assert is_bug == (entry["expected"] != "clean") == bool(lines)
    assert entry["twin"] == (entry["file"].replace(".litmus", "-fixed.litmus") if is_bug else "")


@pytest.mark.daily
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["twin"]], ids=named)
def test_the_twin_differs_by_the_fix(entry: dict[str, str]) -> None:
    """The twin is the same program but for a few lines, and expects to be clean."""
    before, after = ((KERNELS / entry[c]).read_text(encoding="utf-8").splitlines() for c in ("file", "twin"))
    assert after[-1] == "expect clean"
    changed = [line for line in difflib.ndiff(before, after) if line[:1] in "+-"]
    code = [line for line in changed if not line[2:].startswith(("PTX ", '"', "expect"))]
    assert 1 <= len(code) <= 14, "a fix, not another kernel"


def test_every_row_of_the_corpus_is_there() -> None:
    """Idioms and traps are clean, bugs expect what their verdict says."""
    if not CORPUS.is_dir():
        pytest.skip(f"{CORPUS} is absent")
    patterns, bugs = (
        [json.loads(row) for row in (CORPUS / name).read_text(encoding="utf-8").splitlines()]
        for name in ("patterns.jsonl", "bugs.jsonl")
    )
    found = {(entry["corpus"] == "bug", entry["id"]): entry["expected"] for entry in ENTRIES}
    wanted = {(False, row["id"]): "clean" for row in patterns}
    wanted |= {(True, row["id"]): VERDICTS[row["verdict"]] for row in bugs}
    assert found == wanted


def cases() -> list[object]:
    """The rows of the index; the open ones have to fail."""
    return [
        pytest.param(row, marks=pytest.mark.xfail(reason=OPEN[row.file])) if row.file in OPEN else row
        for row in benchmark().rows()
    ]


@pytest.mark.daily
@pytest.mark.parametrize("row", cases(), ids=lambda row: row.file)
def test_the_protocol_engine_answers(row: object) -> None:
    """The finding is of the expected kind at the expected lines; patterns and twins are free of errors."""
    if (
        importlib.util.find_spec("mcheck.engines.protocol") is None
        or importlib.util.find_spec("mcheck.engines.protocol.findings_answer") is None
    ):
        pytest.skip("the protocol engine is not there")
    checked = benchmark().check(row, "protocol", 20.0)
    assert checked.ok, benchmark().line(checked)
