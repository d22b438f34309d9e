"""Every path that CONTRIBUTING names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_paths_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:mcheck|models|litmus|tests|\.ci)(?:/[\w.]*)+)`", text)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
    for target in re.findall(r"\bmake (\w+)", text):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
