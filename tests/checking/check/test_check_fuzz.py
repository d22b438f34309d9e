"""Some hundred sketches with mistakes in every run; ``python tests/checking/check/fuzz.py`` has more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def test_nothing_crashes() -> None:
    spec = importlib.util.spec_from_file_location("check_fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    sys.modules["check_fuzz"] = fuzz
    spec.loader.exec_module(fuzz)
    found = fuzz.run(200, seed=3)
    assert found.crashes == []
    assert min(found.verdicts[verdict] for verdict in ("proved", "finding", "error")) > 10, (
        "the mutations reach the engine"
    )
    assert len(found.errors) > 12
