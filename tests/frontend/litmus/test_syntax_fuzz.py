"""A few hundred mutations in every run; ``python -m tests.frontend.litmus.fuzz`` has more."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PATH = Path(__file__).with_name("fuzz.py")


def test_nothing_but_mcheck_errors() -> None:
    spec = importlib.util.spec_from_file_location("syntax_fuzz", PATH)
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    sys.modules["syntax_fuzz"] = fuzz
    spec.loader.exec_module(fuzz)
    outcome = fuzz.run(600, seed=11)
    assert outcome.crashes == []
    assert outcome.accepted > 30
    assert len(outcome.rejected) > 25
    assert "none" not in outcome.rejected
