"""Source lines with labels below the places that matter, from one file or several."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.report.errors import printable, window
from mcheck.report.lines import Line

MOST = 100
"""The maximum number of characters shown of a source line."""
INDENT = 4
"""The indentation of a finding at most, which takes from the width of the terminal."""
MARGIN = 5 + INDENT + 6
"""What surrounds a source line: the gutter, the indentation, and dots at both ends."""
LEAST = 16
"""The minimum number of characters shown of a source line in a narrow terminal."""
MOST_MARKED = 48
"""The maximum number of characters marked, so that the label beside the mark stays in sight."""
SECONDARY = "bright_blue"
"""The style of the places that are not the primary one; plain blue is hard to read on black."""
_REFERENCE = re.compile(r"(?:\w+(?:::|\.|->))*\w+(?:<[\w, ]*>)?(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])+")
_STATEMENT = re.compile(r"[^;{]+;?")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place and what is said there; the ``primary`` one is where to look first."""

    span: Span
    label: str
    primary: bool = False


def excerpt(
    marks: Sequence[Mark], texts: SourceText, style: str, width: int | None, origin: str = ""
) -> Iterator[Line]:
    """The place of the primary mark, with its ``origin`` if that is known and cannot be read, then the lines of all
    marks, the primary file first.
    """
    if not marks:
        return
    first = next((mark for mark in marks if mark.primary), marks[0])
    paths = dict.fromkeys([first.span.path, *(mark.span.path for mark in marks)])
    gutter = max(len(str(mark.span.line)) for mark in marks)
    for path in paths:
        here = sorted((mark for mark in marks if mark.span.path == path), key=lambda m: (m.span.line, m.span.column))
        lead = first if path == first.span.path else here[0]
        arrow = "-->" if path == first.span.path else ":::"
        yield f"  {arrow} ", (f"{texts.name(path)}:{lead.span.line}:{lead.span.column}{origin}", "dim")
        origin = ""
        yield from _quote(here, texts, gutter, style, width)


def _quote(marks: Sequence[Mark], texts: SourceText, gutter: int, style: str, width: int | None) -> Iterator[Line]:
    last: Span | None = None
    for mark in marks:
        text = texts.line(mark.span)
        if text is None:
            yield f"  {mark.span.line:>{gutter}} | ", (mark.label, style if mark.primary else SECONDARY)
            continue
        text = text.replace("\t", " ")
        blank = len(text[mark.span.column - 1 :]) - len(text[mark.span.column - 1 :].lstrip())
        column = mark.span.column + blank
        room = MOST if width is None else max(min(MOST, width - gutter - MARGIN), LEAST)
        length = min(mark.span.length if mark.span.length > 1 else _extent(text, column), MOST_MARKED, room)
        part, caret, marked = window(text, column - 1, length, room)
        if last is None or mark.span.line != last.line:
            yield f"  {mark.span.line:>{gutter}} | ", part.rstrip()
        sign, colour = ("^", style) if mark.primary else ("-", SECONDARY)
        is_marked, last = mark.span == last, mark.span
        bar, label = f"  {'':>{gutter}} | ", printable(mark.label)
        if width is None or caret + marked + 1 + len(label) <= width - len(bar) - INDENT:
            yield f"{bar}{' ' * caret}", (" " * marked if is_marked else sign * marked, colour), " ", (label, colour)
            continue
        if not is_marked:
            yield f"{bar}{' ' * caret}", (sign * marked, colour)
        for part in textwrap.wrap(label, max(width - len(bar) - INDENT, LEAST)):
            yield bar, (part, colour)


def _extent(text: str, column: int) -> int:
    """The length of the call, the element or the statement that begins at a column: a debug location has no end."""
    found = _REFERENCE.match(text, column - 1) or _STATEMENT.match(text, column - 1)
    return max(len(found[0].rstrip()), 1) if found is not None else 1
