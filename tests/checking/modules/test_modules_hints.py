"""Fixes for races between CTAs that count themselves by an atomic: which of the two fences is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcheck.base.budget import processor_time
from mcheck.engines.protocol import exploration
from mcheck.ptx import check

FOLDER = Path(__file__).parents[2] / "simt" / "launch" / "last_block"
FENCE = "xecute fence.acq_rel.gpu"
RELAXED = "a relaxed one hands nothing over"
TRIED = {"twin1.ptx": "before", "twin2.ptx": "after"}
"""Where a fence is missing."""
UNTRIED = {
    "twin1.ptx": f"E{FENCE} before line {{0}}, or make the atom of line {{0}} .release.gpu: {RELAXED}.",
    "twin2.ptx": f"E{FENCE} after line {{0}}, or make the atom of line {{0}} .acquire.gpu: {RELAXED}.",
    "neither": (
        f"E{FENCE} before line {{0}} and after line {{0}}, or make the atom of line {{0}} .acq_rel.gpu: {RELAXED}."
    ),
}


def fix(name: str) -> tuple[str, int]:
    """The fix of the race, and the line of the atomic."""
    text = (FOLDER / (name if name != "neither" else "kernel.ptx")).read_text(encoding="utf-8")
    if name == "neither":
        text = text.replace("membar.gl;", "")
    line = next(k for k, code in enumerate(text.splitlines(), 1) if "atom.global.inc" in code)
    with processor_time():
        (found,) = check(text, json.loads((FOLDER / "launch.json").read_text(encoding="utf-8"))).findings
    assert found.code == "RACE001"
    return found.missing, line


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize("name", TRIED)
def test_the_fix_is_tried(name: str) -> None:
    missing, line = fix(name)
    assert missing.startswith(f"E{FENCE}")
    assert f"{TRIED[name]} line {line}" in missing  # the other fence is left out if there is time to try without


@pytest.mark.daily
@pytest.mark.parametrize("name", UNTRIED)
def test_the_fix_of_what_is_too_large_to_try(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "MAX_FIX_STEPS", -1)
    missing, line = fix(name)
    assert missing == UNTRIED[name].format(line)
