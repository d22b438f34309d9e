"""The recorder of launches: a library that stands in for CUDA's runtime and driver (``recorder/recorder.h``)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from mcheck.base.errors import InputError

SOURCES: Final = Path(__file__).with_name("recorder")


def build(target: str | os.PathLike[str], compiler: str | None = None) -> None:
    """Compile the recorder into the shared library ``target`` with ``compiler`` (``$CC``, else ``cc``).

    Raises ``InputError`` if there is no such compiler, or if it fails.
    """
    name = compiler or os.environ.get("CC") or "cc"
    program = shutil.which(name)
    if program is None:
        raise InputError(f"there is no C compiler '{name}': set CC, or compile {SOURCES}/*.c yourself")
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    command = [program, "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-o", os.fspath(target), *sources, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{name} failed to build {os.fspath(target)}: {done.stderr.strip()}")


def built_recorder(folder: Path) -> Path:
    """The recorder in ``folder``, a cache, built if it is not there or older than its sources."""
    library = folder / "recorder.so"
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    if library.is_file() and library.stat().st_mtime > newest:
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as scratch:
        build(Path(scratch) / "recorder.so")
        os.replace(Path(scratch) / "recorder.so", library)
    return library
