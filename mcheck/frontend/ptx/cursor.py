"""The text of a module and a cursor over its tokens (PTX ISA 4.1 to 4.4).

Names keep a leading ``%`` and do not include dots; a dot and the name after it are one token (``.shared::cta``).
Statements of a body are matched by one regular expression each (``mcheck.frontend.ptx.body``); the cursor is for
everything that is rarer.
"""

from __future__ import annotations

import re
from typing import Final

from mcheck.base.errors import InputError, Span
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.ptx.problems import problem

COMMENTS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*|/\*', re.DOTALL)

END, DIRECTIVE, NAME, NUMBER, STRING, OP = range(6)

_TOKEN = re.compile(
    r"\s*(?:(\.[A-Za-z_][\w$]*(?:::\w+)*)"
    r"|([A-Za-z_$%][\w$]*)"
    r"|(\d+(?:\.\d*)?[eE][+-]?\d+(?![\w$])|\d[\w$]*(?:\.\d*)?|\.\d+(?:[eE][+-]?\d+)?)"
    r'|("(?:[^"\\\n]|\\.)*")'
    r"|(<<|>>|<=|>=|==|!=|&&|\|\||\S))",
    re.ASCII,
)


class Cursor:
    """A cursor over ``source.clean[start:end]``: ``kind``, ``text`` and ``start`` are those of the current token."""

    __slots__ = ("end", "kind", "last", "next", "source", "start", "text")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.end = end
        self.seek(start)

    def seek(self, offset: int) -> None:
        """Continue at ``offset``."""
        self.last = offset
        self.next = offset
        self.advance()

    def advance(self) -> None:
        """Move to the next token; ``last`` is the end of the previous one."""
        self.last = self.next
        match = _TOKEN.match(self.source.clean, self.next, self.end)
        if match is None:
            self.kind, self.text, self.start = END, "", self.end
            return
        self.kind = match.lastindex or END
        self.text = match[self.kind]
        self.start = match.start(self.kind)
        self.next = match.end()

    def accept(self, text: str) -> bool:
        """Consume the current token if it is ``text``."""
        if self.text == text and self.kind != STRING:
            self.advance()
            return True
        return False

    def expect(self, text: str, expected: str | None = None) -> None:
        """Consume ``text`` or raise an error."""
        if not self.accept(text):
            raise self.unexpected(expected or f"'{text}'")

    def take(self, kind: int, expected: str) -> str:
        """Consume a token of this kind or raise an error."""
        if self.kind != kind:
            raise self.unexpected(expected)
        text = self.text
        self.advance()
        return text

    def span(self) -> Span:
        """The location of the current token."""
        if self.kind == END:
            return self.source.span(max(self.last - 1, 0))
        return self.source.span(self.start, len(self.text))

    def span_since(self, start: int) -> Span:
        """The text from ``start`` to the last token consumed, cut at the end of the line."""
        return line_span(self.source, start, self.last)

    def unexpected(self, expected: str, hint: str | None = None) -> InputError:
        """The error for a current token that is not ``expected``."""
        if self.kind == END and not self.source.clean[self.last :].strip():
            return problem("PTX009", self.span(), expected=expected, hint=hint)
        found = f"'{self.text}'" if self.kind != END else "end of the statement"
        return problem("PTX010", self.span(), found=found, expected=expected, hint=hint)


def line_span(source: Source, start: int, end: int) -> Span:
    """The location of the text from ``start`` to ``end``, cut at the end of its first line."""
    newline = source.clean.find("\n", start, end)
    return source.span(start, max(1, (end if newline < 0 else newline) - start))
