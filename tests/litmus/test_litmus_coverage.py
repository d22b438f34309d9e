"""litmus/COVERAGE.md against the suites: it names only tests that exist, and every test about asynchronous copies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import parse

LITMUS = Path(__file__).parents[2] / "litmus"
SUITES = ("cp-async", "bulk", "reduce", "tensor", "mbarrier", "multimem", "undefined")
TABLE = (LITMUS / "COVERAGE.md").read_text(encoding="utf-8")
ROWS = [[c.strip() for c in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| ")]
NAMES = {suite: {f.stem for f in (LITMUS / suite).glob("*.litmus")} for suite in SUITES}


def cited(cell: str) -> list[str]:
    """The tests that a cell of the table names."""
    return re.findall(r"`([^`]+)`", cell)


def test_names_only_what_exists() -> None:
    """Every test that the table names is a file of one of its suites."""
    everything = set().union(*NAMES.values())
    assert sorted({n for row in ROWS for cell in row[2:] for n in cited(cell)} - everything) == []


@pytest.mark.parametrize("suite", SUITES)
def test_names_every_test(suite: str) -> None:
    """No test of the suites is left out of the table."""
    assert sorted(NAMES[suite] - set(cited(TABLE))) == []


def test_every_sentence_has_a_test() -> None:
    """No row is empty: a sentence is shown, or its limit is."""
    bare = [row[1] for row in ROWS if row[0] not in ("section", "---") and not (cited(row[2]) or cited(row[3]))]
    assert len(ROWS) > 100
    assert bare == []


@pytest.mark.parametrize("suite", SUITES)
def test_names_begin_with_the_suite(suite: str) -> None:
    """The convention of litmus/README.md."""
    assert [n for n in sorted(NAMES[suite]) if not n.startswith(suite + "-")] == []


@pytest.mark.parametrize(
    ("target", "instruction", "message"),
    [
        ("sm_80", "mbarrier.arrive.shared::cta.b64 %rd1, [bar], 2;", "sm_90"),
        ("sm_90", "mbarrier.arrive.shared::cluster.b64 %rd1, [bar@0];", "state"),
    ],
    ids=["U13", "U14"],
)
def test_misuse_that_no_assembler_takes(target: str, instruction: str, message: str) -> None:
    """Two misuses of mbarriers show in the text already: they are errors, not findings, so no suite can hold them."""
    text = f"PTX t\ntarget {target}\n{{ .shared .align 8 .b64 bar; }}\na@cta 0 {{\n  {instruction}\n}}\n"
    with pytest.raises(InputError, match=message):
        parse(text, "t.litmus")
