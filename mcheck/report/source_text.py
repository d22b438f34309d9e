"""Source lines to quote: those of the program, and those of the files that a module says it was compiled from.

Such a file is read if its name is that of source code, beside the module or where the module says. ``place_shown``
chooses the place to show of an access that was inlined: the outermost call that tells the accesses of a finding apart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from mcheck.base.errors import Span
from mcheck.base.files import read_file
from mcheck.findings.finding import Finding

SOURCES = frozenset({".cu", ".cuh", ".h", ".hh", ".hpp", ".inl", ".cpp", ".cc", ".py"})
"""The suffixes of files that are quoted: a module may name any file, and reports end in logs."""
_HEAD = re.compile(r"\s*(?:def\b|@)")
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
            return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return []

    def _shorten(self, name: str) -> str:
        """The name relative to the working directory if it is below, unless the program is named in full as well."""
        here = os.path.relpath(name)
        return name if here.startswith(os.pardir) or (self._path and os.path.isabs(self._path)) else here


def places_shown(finding: Finding, texts: SourceText) -> list[Span | None]:
    """For each access the place to show: in the source if it can be read, otherwise in the program."""
    chains = [access.source for access in finding.accesses]
    shared = count_shared_calls(chains)
    return [
        place_shown(chain, shared, texts) or access.span for chain, access in zip(chains, finding.accesses, strict=True)
    ]


def count_shared_calls(chains: Sequence[tuple[Span, ...]]) -> int:
    """The number of outermost calls that all of these places have in common, and that tell none of them apart."""
    shared = 0
    while all(len(chain) > shared + 1 for chain in chains) and len({_line(c[-shared - 1]) for c in chains}) == 1:
        shared += 1
    return shared if len(chains) > 1 and len({tuple(map(_line, chain)) for chain in chains}) > 1 else 0


def place_shown(chain: Sequence[Span], shared: int, texts: SourceText) -> Span | None:
    """The outermost readable place that is not a shared call, nor the head of a function, which a compiler names as the
    caller of a function that it calls itself; ``None`` if there is none.
    """
    own: Iterable[Span] = reversed(chain[: len(chain) - shared])
    readable = [(span, text) for span in own if (text := texts.line(span)) is not None]
    return next((span for span, text in readable if not _HEAD.match(text)), readable[-1][0] if readable else None)


def _line(span: Span) -> tuple[str, int]:
    return span.path, span.line
