"""What a finding says is missing is carried out where it says, until nothing can be, and the sketch is clean."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.findings.finding import Finding
from mcheck.findings.repair import applied, edits
from mcheck.kernel.engine import check
from mcheck.syntax import parse

KERNELS = Path(__file__).parents[2] / "litmus" / "kernels"
BUGS = [
    row["file"]
    for row in csv.DictReader((KERNELS / "index.csv").read_text(encoding="utf-8").splitlines())
    if row["twin"]
]
WITHOUT = frozenset((Path(__file__).parent / "without_remedy.txt").read_text(encoding="utf-8").split())
"""Sketches whose findings name no instruction to insert: a count, a parity, a place is wrong."""
UNMENDED = {
    "A06-no-barrier-before-the-store.litmus": "the barrier's place is the author's choice",
}
"""Sketches whose remedies cannot all be carried out by inserting lines."""


def errors(text: str) -> list[Finding]:
    found = check(parse(text, "mended.litmus"), load_model("ptx-9.0"), timeout=60).findings
    return [f for f in found if f.severity == "error"]


def mended(text: str, finding: Finding) -> str | None:
    """The text with the remedy of the finding carried out, ``None`` if it names none for a place."""
    lines = text.split("\n")
    changes = edits(finding, lines, table=False)
    return "\n".join(applied(lines, changes)) if changes else None


def test_many_findings_name_instruction_and_place() -> None:
    """Those of all sketches but the listed ones do, as the test below holds them to."""
    assert set(BUGS) >= WITHOUT
    assert len(set(BUGS) - WITHOUT) >= 30


@pytest.mark.parametrize("name", BUGS)
def test_the_remedy_mends_the_sketch(name: str) -> None:
    text = (KERNELS / name).read_text(encoding="utf-8")
    tried = 0
    while tried < 6:
        left = errors(text)
        better = next((t for t in (mended(text, e) for e in left) if t is not None), None)
        if better is None:
            break
        text, tried = better, tried + 1
    assert bool(tried) is (name not in WITHOUT)
    if not tried:
        return
    if name in UNMENDED:
        assert left, UNMENDED[name]
    else:
        assert left == []
