"""Completion in the shell, and help with examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcheck.tools.cli.main import COMMANDS

ROOT = Path(__file__).parents[3]


def complete(words: str, position: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "from mcheck.tools.cli.main import main; main([])"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "_MCHECK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)},
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_are_completed() -> None:
    assert sorted(complete("mcheck c", 1)) == sorted(c for c in COMMANDS if c.startswith("c"))


def test_models_are_completed() -> None:
    assert complete("mcheck run --model ptx-9", 3) == ["ptx-9.0", "ptx-9.3", "ptx-9.5"]


@pytest.mark.parametrize("command", ["run", "outcomes", "doc", "compare"])
def test_help_has_examples(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcheck", command, "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert re.search(rf"^  mcheck {command} ", done.stdout, re.MULTILINE)
