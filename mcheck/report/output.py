"""Where reports go: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from mcheck.errors import InputError


@contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """A stream to write the report to; the file at ``path`` is replaced in one step when all went well."""
    if path is None or path == "-":
        yield sys.stdout
        return
    import tempfile

    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder")
    try:
        descriptor, draft = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            yield stream
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def wants_color(choice: str, stream: IO[str]) -> bool:
    """``--color``: an explicit choice wins, then ``NO_COLOR`` (see no-color.org), then whether anyone is looking."""
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
