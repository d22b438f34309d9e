"""Commands that a page shows with what they print: they are run in a folder where ``mcheck`` is a command."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[1]
FOR_THE_SHELL = re.compile(r"[|;&<>$`*?#]")


@pytest.fixture
def command_folder(tmp_path: Path) -> Path:
    """An empty folder with the command ``mcheck`` on its path."""
    launcher = tmp_path / ".bin" / "mcheck"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mcheck "$@"\n')
    launcher.chmod(0o755)
    return tmp_path


def printed(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints. One of mcheck runs here, and one that the shell has a part in as a process of its own."""
    program, *arguments = shlex.split(command)
    if program != "mcheck" or FOR_THE_SHELL.search(command):
        return _shell(command, folder)
    said = io.StringIO()
    with monkeypatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        patch.chdir(folder)
        patch.setenv("NO_COLOR", "1")
        main(arguments)
    return said.getvalue()


def _shell(command: str, folder: Path) -> str:
    search = os.pathsep.join([str(folder / ".bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment,
        timeout=120,
        check=False,
    )
    return done.stdout
