"""Errors as text: what is wrong, where, what was expected, and a hint.

::

    error[LIT018]: flg is not declared
      --> mp.litmus:7:10
    7 |  ld.acquire.gpu.u32 r0, [flg];
      |                          ^^^
    expected: a declared object, constant or register
    hint: did you mean flag?

The first line is complete by itself. Colours are ANSI sequences and only used on request.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from mcheck.base.errors import Exceeded, InternalError, McheckError, Span, Unsupported
from mcheck.base.files import read_file, with_unix_lines

MAX_WIDTH = 160
NOTE_WIDTH = 120
TAB = "    "

_RESET = "\x1b[0m"
_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "bold": "\x1b[1m", "frame": "\x1b[34m", "hint": "\x1b[36m"}


def render(
    error: McheckError,
    *,
    sources: Mapping[str, str] | None = None,
    color: bool = False,
    width: int | None = None,
) -> str:
    """``error`` with its place, followed by the other errors of the same text. ``sources`` maps paths to texts; other
    texts are read from their files.

    ``width`` is the width of the terminal, if there is one.
    """
    return "\n\n".join(_alone(one, sources, color, width) for one in error.all_errors)


def _alone(error: McheckError, sources: Mapping[str, str] | None, color: bool, width: int | None) -> str:
    kind = "unknown" if isinstance(error, Exceeded) else "unsupported" if isinstance(error, Unsupported) else "error"
    if isinstance(error, InternalError):
        kind = "internal error"
    title = _title(kind, error.code, error.message, color, width)
    lines = [title, *_place(error.span, sources, "error", color, width)]
    if error.expected:
        lines.append(_note("expected", error.expected, color, width))
    if error.section:
        document = "PTX ISA, section " if error.section[0].isdigit() else ""
        lines.append(_note("see", document + error.section, color, width))
    if error.hint:
        lines.append(_note("hint", error.hint, color, width))
    if isinstance(error, InternalError):
        text = "this is a bug in mcheck; please report it with the file that triggers it"
        lines.append(_note("hint", text, color, width))
    return "\n".join(lines)


def render_warning(
    message: str,
    span: Span | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    color: bool = False,
    width: int | None = None,
) -> str:
    """A warning as text, with its place."""
    place = _place(span, sources, "warning", color, width)
    return "\n".join([_title("warning", None, message, color, width), *place])


def _paint(text: str, style: str, color: bool) -> str:
    return f"{_STYLES[style]}{text}{_RESET}" if color else text


def _title(kind: str, code: str | None, message: str, color: bool, width: int | None) -> str:
    label = f"{kind}[{code}]" if code else kind
    text = printable(message)
    if width is not None:
        text = "\n".join(
            textwrap.wrap(text, width, initial_indent=" " * (len(label) + 2), subsequent_indent="  ")
        ).lstrip()
    return _paint(label, "warning" if kind == "warning" else "error", color) + _paint(f": {text}", "bold", color)


def _note(word: str, text: str, color: bool, width: int | None) -> str:
    lines = textwrap.wrap(
        printable(text),
        min(NOTE_WIDTH, width or NOTE_WIDTH),
        initial_indent=f"{word}: ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
    lines[0] = _paint(f"{word}:", "hint", color) + lines[0][len(word) + 1 :]
    return "\n".join(lines)


def _place(
    span: Span | None, sources: Mapping[str, str] | None, style: str, color: bool, terminal: int | None = None
) -> list[str]:
    if span is None:
        return []
    arrow = _paint("  -->", "frame", color)
    lines = [f"{arrow} {printable(span.path)}:{span.line}:{span.column}"]
    text = _line(span, sources)
    if text is None:
        return lines
    number = str(span.line)
    room = MAX_WIDTH if terminal is None else min(MAX_WIDTH, max(terminal - len(number) - 9, 12))
    shown, caret, width = window(text, span.column - 1, span.length, room)
    bar = _paint(f"{number} |", "frame", color)
    blank = _paint(f"{' ' * len(number)} |", "frame", color)
    lines.append(f"{bar} {shown}".rstrip())
    lines.append(f"{blank} {' ' * caret}{_paint('^' * width, style, color)}")
    return lines


def _line(span: Span, sources: Mapping[str, str] | None) -> str | None:
    """The line of ``span``, or ``None`` if it cannot be read."""
    text = sources.get(span.path) if sources is not None else None
    if text is None:
        try:
            text = read_file(span.path).decode("utf-8-sig", "replace")
        except (OSError, ValueError):
            return None
    lines = with_unix_lines(text).split("\n")
    return lines[span.line - 1] if 0 < span.line <= len(lines) else None


def window(text: str, column: int, length: int, room: int = MAX_WIDTH) -> tuple[str, int, int]:
    """The printed part of a line around ``column``, with the column and width of the caret in it."""
    start = 0
    if len(text) > room and column + min(length, room) > room:
        start = min(max(column - room // 3, column + length - room), column)  # the marked part, if it fits
    part = text[start : start + room]
    before = printable(part[: column - start])
    marked = printable(part[column - start : column - start + length])
    head = "..." if start else ""
    tail = "..." if start + room < len(text) else ""
    return head + printable(part) + tail, len(head) + len(before), max(len(marked), 1)


def printable(text: str) -> str:
    """``text`` made safe for a terminal: tabs become blanks, other control characters their escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else TAB if char == "\t" else ascii(char)[1:-1] for char in text)
