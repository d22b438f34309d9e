"""Lines of text with styles: plain strings for files and pipes, rich for terminals.

A line is a tuple of segments, each a string or a (string, style) pair. rich is imported only where colour is wanted.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from mcheck.report.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

Segment = str | tuple[str, str]
Line = tuple[Segment, ...]

STATUS_STYLES = {"ok": "green", "mismatch": "bold red", "unknown": "yellow", "error": "bold red"}


def plain(line: Line) -> str:
    """The line without its styles."""
    return "".join(part if isinstance(part, str) else part[0] for part in line)


class Printer:
    """Writes lines to ``stream``, with colours or without."""

    def __init__(self, stream: IO[str], *, color: bool) -> None:
        self._stream = stream
        self._color = color
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """rich's console on the same stream."""
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
        """One line."""
        if not self._color and self._console is None:  # with a bar at the bottom even plain lines go above it
            self._stream.write(printable(plain(line)) + "\n")
            return
        from rich.text import Text

        parts = [printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in line]
        self.console.print(Text.assemble(*parts))
