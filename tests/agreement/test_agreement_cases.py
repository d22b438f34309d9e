"""Programs on which engines once differed, made small: all three give the same answer, the one that the file names, but
for those that it names as leaving something open.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.frontend.litmus import load
from tests.fuzz.differential import ENGINES, contradictions, run_engines

CASES = sorted(Path(__file__).parent.glob("*.litmus"))
CODES = re.compile(r"^// codes:(.*)$", re.MULTILINE)
OPEN = re.compile(r"^// left open by: (.*)$", re.MULTILINE)


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
    text = path.read_text(encoding="utf-8")
    named, left = CODES.search(text), OPEN.search(text)
    assert named is not None, "which codes are right?"
    right = {engine: None if left and engine in left[1].split() else frozenset(named[1].split()) for engine in ENGINES}
    heard = run_engines(load(str(path)), timeout=60)
    assert contradictions(heard) == []
    assert {engine: h.codes for engine, h in heard.items()} == right
