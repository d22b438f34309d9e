"""Programs on which engines once differed, made small: all three give the same answer, the one that the file names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.frontend.litmus import load
from tests.fuzz.differential import contradictions, run_engines

CASES = sorted(Path(__file__).parent.glob("*.litmus"))
CODES = re.compile(r"^// codes:(.*)$", re.MULTILINE)


EVERY_DAY = {
    "exit-that-a-barrier-no-longer-waits-for",
    "expectations-of-lanes-that-come-late",
    "expectations-that-come-late-together",
    "inval-behind-a-thread-that-left",
}
"""What alone notices a mutant of ``benchmarks/engine-mutants.toml``; the others take turns."""


def turn(path: Path) -> object:
    """A case, with what says when it runs."""
    return pytest.param(path, id=path.stem, marks=() if path.stem in EVERY_DAY else pytest.mark.daily)


@pytest.mark.parametrize("path", [turn(path) for path in CASES])
def test_all_engines_say_what_is_right(path: Path) -> None:
    named = CODES.search(path.read_text(encoding="utf-8"))
    assert named is not None, "which codes are right?"
    heard = run_engines(load(str(path)), timeout=60)
    assert contradictions(heard) == []
    assert {engine: h.codes for engine, h in heard.items()} == dict.fromkeys(heard, frozenset(named[1].split()))
