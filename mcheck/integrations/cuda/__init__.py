"""Launches of CUDA C++ programs: a preloaded library that writes a launch file for every kernel launch.

``recorder.c`` beside this file documents its use and what it stands in for. ``python -m mcheck.integrations.cuda
recorder.so`` compiles it with the system's C compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from mcheck.base.errors import InputError

SOURCE: Final = Path(__file__).with_name("recorder.c")


def build(target: str | os.PathLike[str], compiler: str | None = None) -> None:
    """Compile the recorder into the shared library ``target`` with ``compiler`` (``$CC``, else ``cc``).

    Raises ``InputError`` if there is no such compiler, or if it fails.
    """
    name = compiler or os.environ.get("CC") or "cc"
    program = shutil.which(name)
    if program is None:
        raise InputError(f"there is no C compiler '{name}': set CC, or compile {SOURCE} yourself")
    command = [program, "-shared", "-fPIC", "-O1", "-o", os.fspath(target), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{name} failed to build {os.fspath(target)}: {done.stderr.strip()}")
