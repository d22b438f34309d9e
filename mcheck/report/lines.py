"""Styled lines of text: plain strings for files and pipes, rich for terminals.

A line is a tuple of segments, each a string or a (string, style) pair. rich is imported only for coloured output. Lines
are folded at the width of a terminal, but not in files and pipes.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

from mcheck.report.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

Segment = str | tuple[str, str]
Line = tuple[Segment, ...]

STATUS_STYLES = {
    "ok": "green",
    "found": "yellow",
    "mismatch": "bold red",
    "undefined": "bold red",
    "deadlock": "bold red",
    "unknown": "yellow",
    "error": "bold red",
}


def plain(line: Line) -> str:
    """The line without its styles."""
    return "".join(part if isinstance(part, str) else part[0] for part in line)


NARROWEST = 20


def terminal_width(stream: IO[str]) -> int | None:
    """The width of the terminal behind a stream; ``None`` for a file or a pipe."""
    if not stream.isatty():
        return None
    import shutil

    return max(shutil.get_terminal_size().columns, NARROWEST)


def fold(line: Line, width: int) -> list[Line]:
    """The line in pieces of at most ``width`` characters; later pieces are indented to its last column.

    Lines break at blanks; a word that is too long breaks after a punctuation mark, never inside a number.
    """
    text = plain(line)
    if len(text) <= width:
        return [line]
    indent = len(text) - len(text.lstrip())
    gaps = [m.end() for m in re.finditer(r"(?<=\S) {2,}(?=\S)", text) if m.end() <= width // 2]
    longest = max((len(word) for word in re.findall(r"\w*\d\w*", text)), default=0)
    hang = next((h for h in (*gaps[-1:], min(indent + 2, width // 3)) if longest <= width - h), 2)
    cuts, start = [], 0
    while len(text) - start > (room := width - (hang if start else 0)):
        end = _break(text, start, room, hang if not start else 0)
        cuts.append((start, end))
        start = end + len(text[end:]) - len(text[end:].lstrip())
    cuts.append((start, len(text)))
    pieces = [(a, a + len(text[a:b].rstrip())) for a, b in cuts]
    return [((" " * hang,) if k else ()) + _slice(line, a, b) for k, (a, b) in enumerate(pieces) if a < b]


def _break(text: str, start: int, room: int, least: int) -> int:
    """The end of the piece that begins at ``start``; after at least ``least`` characters."""
    end = start + room
    blank = text.rfind(" ", start + least + 1, end + 1)
    if blank > start + room // 2:
        return blank
    signs = [m.start() for m in _FOLD.finditer(text, start + least + 1, end + 1) if m.start() > start + room // 3]
    if signs:
        return signs[-1]
    if blank > start:
        return blank
    word = re.search(r"\w+$", text[start:end])
    return start + word.start() if word is not None and word.start() and text[end].isalnum() else end


_FOLD = re.compile(r"(?<=[/,:;=+_\])}])(?=[^\s:])|(?<=\D[.-])(?=\w)|(?=[*\[({])")


def _slice(line: Line, start: int, end: int) -> Line:
    """The styled characters of the line from ``start`` to ``end``."""
    out: list[Segment] = []
    at = 0
    for part in line:
        text, style = part if isinstance(part, tuple) else (part, "")
        piece = text[max(start - at, 0) : max(end - at, 0)]
        if piece:
            out.append((piece, style) if style else piece)
        at += len(text)
    return tuple(out)


class Printer:
    """Writer of styled lines to a stream, folded at its ``width`` if it is a terminal."""

    def __init__(self, stream: IO[str], *, color: bool) -> None:
        self._stream = stream
        self._color = color
        self.width = terminal_width(stream)
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """A rich console on the same stream."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=self._stream,
                force_terminal=True if self._color else None,
                no_color=not self._color,
                highlight=False,
                soft_wrap=True,
            )
        return self._console

    def line(self, *line: Segment) -> None:
        """Write one line, folded where it does not fit."""
        for piece in (line,) if self.width is None else fold(_printable(line), self.width):
            self._write(*piece)

    def _write(self, *line: Segment) -> None:
        if not self._color and self._console is None:  # above a progress bar plain lines go through rich too
            self._stream.write(printable(plain(line)) + "\n")
            return
        from rich.text import Text

        self.console.print(Text.assemble(*_printable(line)))


def _printable(line: Line) -> Line:
    return tuple(printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in line)
