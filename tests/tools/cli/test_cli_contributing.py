"""Every path, decorator and table that CONTRIBUTING and the pages for developers name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_paths_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:mcheck|models|litmus|tests|\.ci)(?:/[\w.]*)+)`", text)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
    for target in re.findall(r"\bmake (\w+)", text):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["docs/extending.md", "docs/architecture.md"])
def test_decorators_and_tables_exist(page: str) -> None:
    whole = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"(?s)^## A model of one's own.*?^(?=## )", "", whole, flags=re.MULTILINE)
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "mcheck").rglob("*.py")))
    decorators = set(re.findall(r"`@(\w+)`", text))
    tables = set(re.findall(r"`([A-Z]{2,}(?:_[A-Z]+)*)`", text))
    assert decorators
    assert tables or page == "docs/extending.md"
    assert [name for name in sorted(decorators) if f"\ndef {name}(" not in code] == []
    assert [name for name in sorted(tables) if not re.search(rf"^{name}\b[^\n]* = ", code, re.MULTILINE)] == []
