"""Standard streams that are closed, full or left by their reader, and other troubles of the surroundings, in words."""

from __future__ import annotations

import errno
import io
import os
import sys

from mcheck.base.files import ASTRAY, is_somewhere

_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class _Closed(io.TextIOBase):
    """Standard output that nobody opened (``>&-``): an error only once something is written."""

    def write(self, text: str, /) -> int:  # noqa: ARG002 - the interface of a stream
        raise OSError(errno.EBADF, "it is closed")


def prepare() -> None:
    """Standard streams that take any text; a closed one leaves no descriptor that a pipe could get by chance."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
        sys.stdout = sys.stdout or _Closed()
        sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole life
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_output() -> None:
    """Nothing more goes to standard output, not even what is left in its buffer when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def trouble(error: OSError) -> str:
    """What the surroundings refuse, in words."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None and error.errno in _WRITING:  # files that reports go to have errors of their own
        return f"cannot write to standard output: {reason}"
    if isinstance(error, FileNotFoundError) and not is_somewhere():
        return ASTRAY
    return f"{error.filename}: {reason}" if error.filename else f"the system refuses: {reason}"
