"""Reading a file that somebody names: never more than a bound, for the name may be that of an endless device."""

from __future__ import annotations

import errno
import os
import stat

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


def regular(path: str) -> bool:
    """Whether there is a file at ``path`` that can be read twice and at once: no pipe, no device, no folder."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a name that no file can have
        return False


def lies_with(path: str, owner: str) -> bool:
    """Whether the file at ``path`` really lies in the folder of the file ``owner``, or below it.

    What a file names is read only there: its author need not be whoever runs mcheck, and may see what is printed.
    """
    real = os.path.realpath(path)
    folders = (os.path.realpath(os.path.dirname(owner) or os.curdir), os.path.dirname(os.path.realpath(owner)))
    return any(real.startswith(os.path.join(folder, "")) for folder in folders)


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
