"""Some hundred sketches with mistakes in every run; ``python tests/checking/check/fuzz.py`` has more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nothing_crashes(first: int) -> None:
    spec = importlib.util.spec_from_file_location("check_fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    sys.modules["check_fuzz"] = fuzz
    spec.loader.exec_module(fuzz)
    found = fuzz.run(50, seed=3, first=first)
    assert found.crashes == []
    assert min(found.verdicts[verdict] for verdict in ("proved", "finding", "error")) > 2, (
        "the mutations reach the engine"
    )
    assert len(found.errors) > 6
