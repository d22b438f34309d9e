"""docs/coverage.md has a row for every part of the models as they are, and names tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from benchmarks.coverage_page import PAGE, misplaced, rows

ROOT = Path(__file__).parents[2]


def test_every_part_has_its_row() -> None:
    assert misplaced(rows(PAGE.read_text(encoding="utf-8"))) == []


def test_the_tests_exist_and_are_counted() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tests = [row.test for row in rows(text)]
    written = [name for name in tests if name.startswith(("litmus/", "benchmarks/"))]
    assert [name for name in written if not (ROOT / name).is_file()] == []
    by = Counter(name.split("/")[0] for name in written)
    argued = tests.count("")
    said = [int(n) for n in re.findall(r"\d+", text.split("Of ", 1)[1].split("table")[0])]
    assert said == [len(tests), len(tests) - len(written) - argued, by["litmus"], by["benchmarks"], argued]
