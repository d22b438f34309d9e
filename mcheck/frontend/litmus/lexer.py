"""The lexer of litmus files: tokens with positions.

One compiled expression finds all tokens; a cursor walks over them. Names take their dots and ``::`` along, so an
opcode is one token (``cp.async.bulk.shared::cluster.global``) and so is ``.global``. ``%`` is always a token by itself:
after an operand it is the remainder, before a name it makes a register. A number takes the letters that follow along
(``128B``); what it means is decided where it stands.

This and the parsers on top are written by hand because of start-up time. A grammar of the table form in lark (LALR)
takes 45 ms to import, 40 ms to build and 3.2 ms to turn fifteen rows of three cells into a bare tree. Here the same
file is lexed in 0.1 ms, and parsed, decoded and bound to threads in 0.9 ms (2.1 ms if no cell was seen before). A suite
of 126 files has to be parsed and solved in 0.7 s, the start of the interpreter included.
"""

from __future__ import annotations

import re

from mcheck.base.errors import InputError, Span
from mcheck.frontend.litmus.codes import problem
from mcheck.frontend.litmus.source import Source

NAME, NUMBER, OP, BAD, END = 1, 2, 3, 4, 0

_TOKEN = re.compile(
    r"(\.?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*)"
    r"|(\d[\w$]*(?:\.\d+(?:[eE][+-]?\d+)?)?)"
    r"|(<<|>>|<=|>=|==|!=|&&|\|\||/\\|\\/|\.\.|[-+*/%&|^~!<>=()\[\]{},;:@_.?])"
    r"|(\S)",
    re.ASCII,
)


class Tokens:
    """A cursor over the tokens of ``source.clean[start:end]`` (or of ``text``, which has the same offsets)."""

    __slots__ = ("at", "depth", "kinds", "operators", "source", "starts", "texts")

    def __init__(self, source: Source, start: int, end: int, text: str | None = None) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.operators = 0
        kinds: list[int] = []
        texts: list[str] = []
        starts: list[int] = []
        for match in _TOKEN.finditer(source.clean if text is None else text, start, end):
            kind = match.lastindex or BAD
            kinds.append(kind)
            texts.append(match[kind])
            starts.append(match.start(kind))
        for _ in range(4):  # so that lookahead needs no bounds check
            kinds.append(END)
            texts.append("")
            starts.append(end)
        self.kinds = kinds
        self.texts = texts
        self.starts = starts

    @property
    def text(self) -> str:
        """The current token, empty at the end."""
        return self.texts[self.at]

    @property
    def kind(self) -> int:
        return self.kinds[self.at]

    def span(self, at: int | None = None) -> Span:
        """The location of token ``at`` (default: the current one)."""
        index = self.at if at is None else at
        text = self.texts[index]
        return self.source.span(self.starts[index] if text else self._end(), max(len(text), 1))

    def _end(self) -> int:
        """The offset of the last non-blank character, at which something is missing."""
        clean = self.source.clean
        offset = min(self.starts[-1], len(clean))
        while offset > 0 and clean[offset - 1].isspace():
            offset -= 1
        return offset

    def span_since(self, first: int) -> Span:
        """The location from token ``first`` to the last one consumed, cut at the end of the first line."""
        start = self.starts[first]
        last = max(first, self.at - 1)
        end = self.starts[last] + max(len(self.texts[last]), 1)
        newline = self.source.clean.find("\n", start, end)
        return self.source.span(start, max(1, (end if newline < 0 else newline) - start))

    def raw_since(self, first: int) -> str:
        """The text from token ``first`` to the last one consumed, blanks squeezed."""
        last = max(first, self.at - 1)
        return " ".join(self.source.clean[self.starts[first] : self.starts[last] + len(self.texts[last])].split())

    def found(self) -> str:
        """The current token as messages name it."""
        if self.kinds[self.at] != END:
            return f"'{self.text}'"
        return "end of the cell" if self.starts[-1] < len(self.source.clean) else "end of the file"

    def accept(self, text: str) -> bool:
        """Consume the current token if it is ``text``."""
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, expected: str | None = None, hint: str | None = None) -> None:
        """Consume ``text``; raises ``InputError`` if the current token is another one."""
        if self.texts[self.at] != text:
            raise self.unexpected(expected or f"'{text}'", hint)
        self.at += 1

    def semicolon(self, expected: str = "';'") -> None:
        """Consume a semicolon; raises ``InputError`` at the end of the line that lacks it."""
        if self.texts[self.at] != ";":
            if self.kinds[self.at] != END and self.on_new_line():
                raise problem("LIT084", self.after_last(), expected=expected)
            raise self.unexpected(expected)
        self.at += 1

    def on_new_line(self) -> bool:
        """Whether the current token begins a new line."""
        return self.at > 0 and "\n" in self.source.clean[self.starts[self.at - 1] : self.starts[self.at]]

    def after_last(self) -> Span:
        """The location right after the last token consumed."""
        return self.source.span(self.starts[self.at - 1] + len(self.texts[self.at - 1]))

    def name(self, expected: str) -> str:
        """Consume a name without dots."""
        text = self.texts[self.at]
        if self.kinds[self.at] != NAME or "." in text or ":" in text:
            raise self.unexpected(expected)
        self.at += 1
        return text

    def unexpected(self, expected: str, hint: str | None = None) -> InputError:
        """The error for an unexpected current token."""
        kind = self.kinds[self.at]
        if kind == END and self.starts[-1] >= len(self.source.clean.rstrip()):
            return problem("LIT012", self.span(), expected=expected, hint=hint)
        if kind == BAD:
            return problem("LIT010", self.span(), found=ascii(self.text), expected=expected, hint=hint)
        return problem("LIT011", self.span(), found=self.found(), expected=expected, hint=hint)


MAX_LITERAL = (1 << 64) - 1


def integer(text: str) -> int | None:
    """The value of a number token (decimal, ``0x…``, a trailing ``U``, PTX's ``0f…``/``0d…`` as bits), or ``None``."""
    if not text.isascii():
        return None
    if text.isdigit():
        return int(text) if len(text) < 40 else 1 << 200
    lower = text.lower()
    bits = lower[:2] + str(len(lower))
    digits, base = lower, 10
    if lower.startswith("0x") or bits in ("0f10", "0d18"):
        digits, base = lower[2:], 16
    elif lower.startswith("0b"):
        digits, base = lower[2:], 2
    digits = digits.removesuffix("u")
    if not digits or "_" in digits:
        return None
    if len(digits) > 200:
        return 1 << 200
    try:
        return int(digits, base)
    except ValueError:
        return None
