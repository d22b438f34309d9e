"""The suites under litmus/ run through the engine: every test answers what its own file expects.

``counts.json`` holds the number of tests in each suite, so that none is lost or left out of the count silently.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.frontend.litmus import load
from mcheck.ir.program import Expectation

LITMUS = Path(__file__).parents[2] / "litmus"
COUNTS = Path(__file__).with_name("counts.json")
FILES = sorted(LITMUS.rglob("*.litmus"))
SKETCHES = "kernels"
"""The suite of kernel sketches: whole warps and rings over several rounds are work for the protocol engine, so the
engine that enumerates executions does not answer for them here; test_litmus_kernels.py does."""
ENUMERATED = [f for f in FILES if f.relative_to(LITMUS).parts[0] != SKETCHES]
SECTION = re.compile(r"\b(PTX ISA\b.*)?\b[5-9]\.\d+(\.\d+)*\b")


def label(path: Path) -> str:
    """How pytest names a test of a file."""
    return str(path.relative_to(LITMUS)).removesuffix(".litmus")


def mismatches(expectation: Expectation, got: Answer) -> list[str]:
    """What of the expectation the answer does not meet, in words."""
    wrong = []
    if expectation.verdict is not None and got.verdict != expectation.verdict:
        wrong.append(f"verdict {got.verdict}, expected {expectation.verdict}")
    if got.verdict == "unknown":
        wrong.append("no verdict")
    kinds = {f.kind for f in got.findings if f.severity in ("error", "review")}
    errors = sorted({f"{f.code}: {f.message}" for f in got.findings if f.severity == "error"})
    for line in expectation.kinds:
        if line == ("clean",):
            wrong += [f"not clean: {e}" for e in errors]
        elif not kinds & set(line):
            wrong.append(f"no finding of kind {' | '.join(line)}, only {sorted(kinds)}")
    return wrong


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("path", ENUMERATED, ids=label)
def test_answers_as_expected(path: Path, enumerated: Callable[[Path], Answer]) -> None:
    """Verdict and findings are those of the file's ``expect`` lines."""
    got = enumerated(path)
    assert mismatches(load(str(path)).expectation, got) == [], got.reason or ""


def faults(path: Path) -> list[str]:
    """What is not well kept in a file: name, header and expectation are there, and nothing in it earns a warning."""
    program = load(str(path))
    expected = program.expectation
    conditions = {
        "its name is another": program.name == path.name.removesuffix(".litmus"),
        "a test without expectation proves nothing": expected.verdict is not None or bool(expected.kinds),
        "a condition has an expected verdict": (program.condition.kind == "none") == (expected.verdict is None),
        "the header names no section of the PTX ISA": any(SECTION.search(line) for line in program.doc),
        "the header says too little of what is shown": len(" ".join(program.doc)) >= 30,
    }
    return [fault for fault, holds in conditions.items() if not holds] + [str(w) for w in program.warnings]


@pytest.mark.parametrize("suite", sorted({f.relative_to(LITMUS).parts[0] for f in FILES}))
def test_is_well_kept(suite: str) -> None:
    """All files of a suite; a failure names the files and what is wrong with each."""
    assert {label(f): found for f in (LITMUS / suite).rglob("*.litmus") if (found := faults(f))} == {}


def test_names_are_unique() -> None:
    """A name means one test, across all suites."""
    repeated = [name for name, n in Counter(f.name for f in FILES).items() if n > 1]
    assert repeated == []


def test_no_test_is_lost() -> None:
    """The number of tests per suite is the committed one; every file below litmus/ is a test, a page, the index,
    edges to generate tests from, or what a chip was seen to do.
    """
    found = dict(sorted(Counter(f.relative_to(LITMUS).parts[0] for f in FILES).items()))
    assert found == json.loads(COUNTS.read_text(encoding="utf-8")), "update counts.json if this is meant"
    others = {LITMUS / SKETCHES / "index.csv", *LITMUS.glob("generate/*.toml")}
    strays = [f for f in LITMUS.rglob("*") if f.is_file() and f.suffix not in (".litmus", ".md")]
    assert sorted(set(strays) - others) == []


def test_make_runs_every_suite() -> None:
    """The suites that ``make run`` names are all that there are, except the sketches."""
    text = (LITMUS.parent / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"\blitmus/([\w-]+)", text.split("SUITES =")[1].split("\n\n")[0])
    assert sorted(named) == sorted({f.relative_to(LITMUS).parts[0] for f in ENUMERATED})


def test_classics_are_many() -> None:
    """Promises and their limits: both verdicts, and every kind of expected finding, occur in the classics."""
    suites = ("classic", "coherence", "scopes", "fences", "atomics", "barriers", "proxies", "liveness")
    programs = [load(str(f)) for f in FILES if f.relative_to(LITMUS).parts[0] in suites]
    assert {p.expectation.verdict for p in programs} >= {"pass", "fail"}
    assert {k for p in programs for line in p.expectation.kinds for k in line} == {
        "clean",
        "race",
        "undefined",
        "deadlock",
    }
    assert {p.model for p in programs} >= {None, "sc", "ptx-6.0", "ptx-7.5", "ptx-9.3"}
