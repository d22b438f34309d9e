"""Some hundred mutated tests from text to report in every run; ``python tests/tools/cli/fuzz.py`` has more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_crashes(seed: int) -> None:
    spec = importlib.util.spec_from_file_location("cli_fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    sys.modules["cli_fuzz"] = fuzz
    spec.loader.exec_module(fuzz)
    tally = fuzz.run(200, seed=seed)
    assert tally.crashes == []
    assert min(tally.verdicts[verdict] for verdict in ("pass", "fail", "error")) > 5, "the mutations reach the engine"
