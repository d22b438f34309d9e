"""Robust standard streams (closed, full, without a reader), and messages for errors of the operating system."""

from __future__ import annotations

import errno
import io
import os
import sys

from mcheck.base.files import LOST_DIRECTORY, has_working_directory

_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class _Closed(io.TextIOBase):
    """Standard output that is closed (``>&-``): an error only if something is written."""

    def write(self, text: str, /) -> int:  # noqa: ARG002 - the interface of a stream
        raise OSError(errno.EBADF, "it is closed")


def prepare_streams() -> None:
    """Make standard streams accept any text, and keep the descriptors of closed ones from being reused by a pipe."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
        sys.stdout = sys.stdout or _Closed()
        sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole life
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Discard all further standard output, including what is left in its buffer when the interpreter exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def describe_os_error(error: OSError) -> str:
    """An error of the operating system as a message."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None and error.errno in _WRITING:  # files that reports go to have errors of their own
        return f"cannot write to standard output: {reason}"
    if isinstance(error, FileNotFoundError) and not has_working_directory():
        return LOST_DIRECTORY
    return f"{error.filename}: {reason}" if error.filename else f"operating system error: {reason}"
