"""Output of reports: to standard output, or to a file that is replaced atomically."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from typing import IO

from mcheck.base.errors import InputError
from mcheck.base.files import LOST_DIRECTORY, has_lost_directory

_DESCRIPTORS = ("/dev/fd/", "/proc/")


@contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """A stream for the report; the file at ``path`` is replaced atomically if no exception occurs."""
    if path is None or path == "-":
        yield sys.stdout
        return
    refuse_unwritable(path)
    # In memory until then: a process that is killed leaves no partial file.
    report = StringIO()
    yield report
    replace_file(path, report.getvalue().encode("utf-8", "backslashreplace"))


@contextmanager
def open_second_output(path: str | None) -> Iterator[IO[str] | None]:
    """A stream for a second report, or None if there is no path."""
    if path is None:
        yield None
        return
    with output(path) as stream:
        yield stream


def refuse_unwritable(path: str) -> None:
    """Raise ``InputError`` if it is certain in advance that ``path`` cannot be written."""
    if has_lost_directory(path):
        raise InputError(f"cannot write {path}: {LOST_DIRECTORY}")
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: folder {folder} does not exist")
    if os.path.islink(path) and not _special(path):
        raise InputError(f"cannot write {path}: {_leads(path)}")
    if not _special(path) and not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: folder {folder} is not writable")


def replace_file(path: str, data: bytes) -> None:
    """Replace the file at ``path`` atomically: at any time it has the old or the new contents."""
    try:
        if os.path.islink(path) and not _special(path):
            raise InputError(f"cannot write {path}: {_leads(path)}")
        if _special(path):
            with open(path, "wb") as file:
                file.write(data)
            return
        with _uninterrupted():
            _replace(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _special(path: str) -> bool:
    """Whether this is a device or a pipe, such as /dev/stdout, which is written and not replaced. (/dev/stdout may be a
    link to the file that standard output was redirected to.)
    """
    folder = os.path.join(os.path.realpath(os.path.dirname(path) or os.curdir), "")
    return os.path.exists(path) and (not os.path.isfile(path) or folder == "/dev/" or folder.startswith(_DESCRIPTORS))


def _leads(path: str) -> str:
    """The message for a link, which is never written through: another user may have created it."""
    return f"it is a link to {os.path.realpath(path)}; name that file, or remove the link"


def _replace(path: str, data: bytes) -> None:
    import tempfile

    place = os.path.join(os.path.realpath(os.path.dirname(path) or os.curdir), os.path.basename(path))
    descriptor, draft = tempfile.mkstemp(prefix=f".{os.path.basename(place)[:100]}.", dir=os.path.dirname(place))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(draft, 0o666 & ~umask())
        os.replace(draft, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block the signals that end the process for the duration of the context."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    asked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def umask() -> int:
    """The file mode creation mask of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def wants_color(choice: str, stream: IO[str]) -> bool:
    """Whether to colour a stream: an explicit ``--color`` wins, then ``NO_COLOR`` (no-color.org), then a terminal."""
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
