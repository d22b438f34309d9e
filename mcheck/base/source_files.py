"""The texts of source files that a program or a module names."""

from __future__ import annotations

import os

from mcheck.base.errors import Span
from mcheck.base.files import read_file, with_unix_lines

SOURCES = frozenset({".cu", ".cuh", ".h", ".hh", ".hpp", ".inl", ".cpp", ".cc", ".py"})
"""The suffixes of files that are quoted: a module may name any file, and reports end in logs."""
MAX_BYTES = 4 << 20
"""The size from which on a file is not quoted."""


class SourceText:
    """The texts of a program and of its sources, by path; each file is read once."""

    def __init__(self, text: str = "", path: str | None = None) -> None:
        self._path = path
        self._texts: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        if path is not None and text:
            self._texts[path] = text.split("\n")

    def line(self, span: Span) -> str | None:
        """The line of a span, or ``None`` if it cannot be read."""
        lines = self._lines(span.path)
        return lines[span.line - 1] if 0 < span.line <= len(lines) else None

    def name(self, path: str) -> str:
        """The path of a file as the user can open it."""
        self._lines(path)
        return self._names.get(path, path)

    def whole(self, path: str) -> str:
        """The text of a file, empty if it cannot be read."""
        return "\n".join(self._lines(path))

    def _lines(self, path: str) -> list[str]:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> list[str]:
        if os.path.splitext(path)[1] not in SOURCES:
            return []
        beside = os.path.dirname(self._path) if self._path else ""
        for name in dict.fromkeys((os.path.join(beside, path), os.path.join(beside, os.path.basename(path)), path)):
            try:
                if os.path.getsize(name) > MAX_BYTES:
                    continue
                text = read_file(name).decode("utf-8-sig", "replace")
            except (OSError, ValueError):
                continue
            self._names[path] = self._shorten(name)
            return with_unix_lines(text).split("\n")
        return []

    def _shorten(self, name: str) -> str:
        """The name relative to the working directory if it is below, unless a program there has its full name."""
        in_full = self._path and os.path.isabs(self._path) and _is_below(self._path)
        return os.path.relpath(name) if _is_below(name) and not in_full else name


def _is_below(path: str) -> bool:
    """Whether a file is below the working directory."""
    return not os.path.relpath(path).startswith(os.pardir)
