"""What the README shows is what happens: its files are written, its commands run, their output compared.

``pytest --promote`` writes what the commands print into the README.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.cuda.nvcc import find_compiler
from tests.shown_commands import printed

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=(?P<title>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

COMPILER = re.compile(r"\bnvcc \d+\.\d+")
"""The release of the compiler, which is that of the README in what is compared."""


def compiles() -> bool:
    """Whether there are an nvcc and the headers that the README's kernel includes."""
    try:
        compiler = find_compiler()
    except InputError:
        return False
    command = [compiler.path, *compiler.flags, "-E", "-x", "cu", "-"]
    return not subprocess.run(
        command, input="#include <nv/target>", capture_output=True, text=True, check=False
    ).returncode


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell to run the commands with")
@pytest.mark.parametrize("cuda", [False, pytest.param(True, marks=pytest.mark.daily(days=4, least=0))])
def test_the_readme_shows_what_happens(
    cuda: bool, command_folder: Path, promote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled with nvcc by itself: that takes most of the time."""
    if cuda and not compiles():
        pytest.skip("no nvcc, or without headers")
    text = README.read_text(encoding="utf-8")
    shown, happened, run = [], [], 0
    for block in BLOCK.finditer(text):
        if block["title"]:
            (command_folder / block["title"]).write_text(block["body"])
        if block["kind"] != "console":
            continue
        if (".cu" in block["body"]) != cuda:
            continue
        commands = [line[2:] for line in block["body"].splitlines() if line.startswith("$ ")]
        run += len(commands)
        shown.append(block["body"])
        said = "".join(f"$ {command}\n{printed(command, command_folder, monkeypatch)}" for command in commands)
        happened.append(COMPILER.sub("nvcc 13.5", said))
    assert run >= 3
    if promote:
        for old, new in zip(shown, happened, strict=True):
            text = text.replace(old, new)
        README.write_text(text, encoding="utf-8")
        return
    assert shown == happened


def test_the_readme_names_what_exists() -> None:
    text = README.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake (\w+)", text):
        assert f"\n{target}:" in makefile, target
    usage = "".join(
        subprocess.run(
            [sys.executable, "-m", "mcheck", command, "--help"], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        for command in ("run", "check")
    )
    for option in set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text)) - {"--graph"}:
        assert option in usage, option
