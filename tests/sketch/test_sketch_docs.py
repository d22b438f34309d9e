"""The Python example of the documentation runs, and holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "kernel-sketches.md"


def test_the_example_of_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "example.py"
    path.write_text(example)
    exec(compile(example, str(path), "exec"), {})
    assert capsys.readouterr().out.startswith("PTX ring\n")
