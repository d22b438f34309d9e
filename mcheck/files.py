"""Reading a file that somebody names: never more than a bound, for the name may be that of an endless device."""

from __future__ import annotations

import errno
import os

MEBIBYTE = 1 << 20
MAX_BYTES = 8 * MEBIBYTE
"""More than anybody writes, and read in seconds."""


def contents(path: str, most: int = MAX_BYTES) -> bytes:
    """All bytes of the file at ``path``; ``OSError`` if it cannot be read or holds more than ``most``."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        bound = f"{most // MEBIBYTE} MiB" if most % MEBIBYTE == 0 else f"{most} bytes"
        raise OSError(errno.EFBIG, f"it holds more than {bound}")
    return data


def text(path: str, most: int = MAX_BYTES, encoding: str = "utf-8") -> str:
    """The file as text with Unix line ends; ``UnicodeDecodeError`` beside what ``contents`` raises."""
    return contents(path, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def is_somewhere() -> bool:
    """Whether there is a working directory; it may have been deleted."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def astray(path: str) -> bool:
    """Whether a path leads nowhere because the working directory that it starts from has been deleted."""
    return not os.path.isabs(path) and not is_somewhere()


ASTRAY = "the working directory is no longer there"
