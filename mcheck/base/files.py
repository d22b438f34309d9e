"""Bounded reading of files named by the user: a name may be that of a device without end."""

from __future__ import annotations

import errno
import os
import stat

MEBIBYTE = 1 << 20
MAX_BYTES = 8 * MEBIBYTE
"""More than anybody writes by hand, and read within seconds."""


def read_file(path: str, most: int = MAX_BYTES) -> bytes:
    """The bytes of the file at ``path``; ``OSError`` if it cannot be read or has more than ``most`` bytes."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        bound = f"{most // MEBIBYTE} MiB" if most % MEBIBYTE == 0 else f"{most} bytes"
        raise OSError(errno.EFBIG, f"it has more than {bound}")
    return data


def read_text_file(path: str, most: int = MAX_BYTES, encoding: str = "utf-8") -> str:
    """The file as text with Unix line ends; may raise ``UnicodeDecodeError``, and what ``read_file`` raises."""
    return with_unix_lines(read_file(path, most).decode(encoding))


def with_unix_lines(text: str) -> str:
    """The text with Unix line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_regular_file(path: str) -> bool:
    """Whether ``path`` is a regular file, which can be read repeatedly: no pipe, device or folder."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a name that no file can have
        return False


def is_in_folder_of(path: str, owner: str) -> bool:
    """Whether the file at ``path``, symbolic links resolved, is in the folder of the file ``owner`` or below it.

    Files that another file names are read only there: its author need not be the person who runs mcheck, and may see
    what is printed.
    """
    real = os.path.realpath(path)
    folders = (os.path.realpath(os.path.dirname(owner) or os.curdir), os.path.dirname(os.path.realpath(owner)))
    return any(real.startswith(os.path.join(folder, "")) for folder in folders)


def has_working_directory() -> bool:
    """Whether the working directory still exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def has_lost_directory(path: str) -> bool:
    """Whether the path is relative to a working directory that has been deleted."""
    return not os.path.isabs(path) and not has_working_directory()


LOST_DIRECTORY = "the working directory no longer exists"
