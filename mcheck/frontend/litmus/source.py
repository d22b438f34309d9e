"""The text of a litmus file: reading it, blanking comments, and source locations of offsets.

Comments are ``(* … *)``, ``/* … */`` and ``// …``; they are replaced by blanks, so that offsets stay those of the
file. Quoted strings (which may contain ``//``) are kept.
"""

from __future__ import annotations

import errno
import re
from bisect import bisect_right

from mcheck.base.errors import Span
from mcheck.base.files import MAX_BYTES, read_file, with_unix_lines
from mcheck.frontend.litmus.codes import problem

_COMMENT = re.compile(r'"[^"]*"|\(\*.*?\*\)|/\*.*?\*/|//[^\n]*|\(\*|/\*', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


class Source:
    """The text of a file; ``clean`` is the text with comments blanked; ``comments`` matches them, and strings."""

    __slots__ = ("_starts", "clean", "path", "text")

    def __init__(self, text: str, path: str, comments: re.Pattern[str] = _COMMENT) -> None:
        self.path = path
        self.text = text
        self._starts: list[int] | None = None
        self.clean = text
        if "(*" in text or "/*" in text or "//" in text:
            self.clean = comments.sub(self._blank, text)

    def _blank(self, match: re.Match[str]) -> str:
        comment = match.group()
        if comment[0] == '"':
            return comment
        if comment in ("(*", "/*"):
            end = "*)" if comment == "(*" else "*/"
            raise problem("LIT008", self.span(match.start(), 2), expected=f"{end} before the end of the file")
        return _NOT_NEWLINE.sub(" ", comment)

    def span(self, offset: int, length: int = 1) -> Span:
        """The location of ``length`` characters at ``offset``."""
        starts = self._starts
        if starts is None:
            starts = self._starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        line = bisect_right(starts, offset)
        return Span(self.path, line, offset - starts[line - 1] + 1, length)


def read_source(path: str) -> str:
    """Read the text of the file at ``path``; raises ``InputError`` if that fails."""
    return decode_source(read_source_bytes(path), path)


def read_source_bytes(path: str, most: int = MAX_BYTES) -> bytes:
    """Read the bytes of the file at ``path``; raises ``InputError`` if that fails or there are more than ``most``."""
    try:
        return read_file(path, most)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise problem("LIT005", None, path=path, limit=most) from None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise problem("LIT001", None, path=path, reason=reason) from None


def decode_source(data: bytes, path: str, most: int = MAX_BYTES) -> str:
    """Decode ``data``: text with Unix line ends and without a byte order mark."""
    if len(data) > most:
        raise problem("LIT005", None, path=path, limit=most)
    if b"\0" in data:
        raise problem("LIT003", Span(path, 1, 1))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        head = data[: error.start]
        line = head.count(b"\n") + 1
        column = len(head[head.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise problem("LIT004", Span(path, line, column), hint="save the file as UTF-8") from None
    return with_unix_lines(text)
