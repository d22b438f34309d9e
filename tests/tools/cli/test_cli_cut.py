"""Commands that a time-out cuts, with a cache, and again with time: the cache holds nothing that was cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cut import made, outcome
from tests.checking.policy.test_policy_every_n import FENCE, RING

MODULES = Path(__file__).parents[3] / "benchmarks" / "modules"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """Command lines by what they are about."""
    (tmp_path / "wrong.litmus").write_text(RING.format(parity="(k/S)%2", fence=""))
    (tmp_path / "proved.litmus").write_text(RING.format(parity="(k/S)%2", fence=FENCE))
    module = MODULES / "pipe-slot-read"
    return {
        "a number with an error": ("check", tmp_path / "wrong.litmus"),
        "every number": ("check", tmp_path / "proved.litmus"),
        "a module": ("check", module.with_suffix(".ptx"), "--launch", module.with_suffix(".json")),
    }


def document(out: str) -> dict[str, Any]:
    (found,) = json.loads(out)["results"]
    return {key: value for key, value in found.items() if key != "seconds"}


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("what", ["a number with an error", "every number", "a module"])
@pytest.mark.parametrize("limit", [0.05, 0.3])
def test_what_was_cut_does_not_come_again(
    what: str, limit: float, files: dict[str, tuple[object, ...]], mcheck: Callable, tmp_path: Path
) -> None:
    command = (*files[what], "--format", "json", "--jobs", 1)
    whole = document(mcheck(*command, "--cpu-timeout", 60).out)
    cut = document(mcheck(*command, "--cpu-timeout", limit, "--cache", tmp_path / "cache").out)
    assert cut.get("cut") or cut == whole
    assert document(mcheck(*command, "--cpu-timeout", 60, "--cache", tmp_path / "cache").out) == whole
    assert document(mcheck(*command, "--cpu-timeout", limit, "--cache", tmp_path / "cache").out) == whole, "kept now"


@pytest.mark.daily(days=3, least=0)
def test_the_benchmark_makes_the_same_command_again_and_judges_it() -> None:
    assert made(7, 3) == made(7, 3)
    assert len({made(7, k).kind for k in range(30)}) == 4
    number = next(k for k in range(30) if made(7, k).kind == "module")
    assert outcome(7, number).what in ("same", "cut", "open")
