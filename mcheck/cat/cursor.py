"""The token cursor of the cat parser, and its errors for unexpected tokens."""

from __future__ import annotations

from typing import Final

from mcheck.base.errors import InputError, Span
from mcheck.cat.messages import error
from mcheck.cat.scanner import END, KEYWORDS, NAME, STRING, Tokens
from mcheck.cat.syntax import Name

TESTS: Final = frozenset({"acyclic", "irreflexive", "empty"})
STATEMENTS: Final = (
    frozenset({"let", "flag", "include", "show", "unshow", "procedure", "call", "with", "undefined_unless", "if", "~"})
    | TESTS
)
# Legal in herd, not here: what belongs to bell files, and statements over sets of sets.
FOREIGN: Final = frozenset(
    {"enum", "debug", "forall", "instructions", "default", "yield", "begin", "when", "assert", "match"}
)


class Cursor:
    """The token at ``at``, and the steps over it that every rule of the grammar takes."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.source = tokens.source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.at = 0
        self.depth = 0

    def span(self, index: int | None = None) -> Span:
        index = self.at if index is None else index
        return self.source.span(self.tokens.starts[index], self.tokens.ends[index])

    def found(self) -> str:
        kind = self.kinds[self.at]
        if kind == END:
            return "the end of the file"
        if kind == STRING:
            return f'"{self.texts[self.at]}"'
        return f"the keyword {kind}" if kind in KEYWORDS else self.texts[self.at]

    def wrong(self, expected: str) -> InputError:
        kind = self.kinds[self.at]
        if kind in FOREIGN or kind in ("{", "'", "++", "||", "->"):
            return error("CAT012", self.span(), what=self.texts[self.at])
        return error("CAT010", self.span(), expected=expected, found=self.found())

    def take(self, kind: str, expected: str | None = None) -> int:
        if self.kinds[self.at] != kind:
            raise self.wrong(expected or kind)
        self.at += 1
        return self.at - 1

    def close(self, kind: str, opened: int) -> int:
        """The closing bracket of ``opened``; where it is missing, the opening one is the place to look at."""
        if self.kinds[self.at] == kind:
            self.at += 1
            return self.tokens.ends[self.at - 1]
        if self.kinds[self.at] == END or self.kinds[self.at] in STATEMENTS - {"~"}:
            raise error("CAT014", self.span(opened), what=self.texts[opened])
        raise self.wrong(f"an operator or {kind}")

    def name(self, expected: str = "a name") -> Name:
        index = self.take(NAME, expected)
        return Name(self.texts[index], self.tokens.starts[index], self.tokens.ends[index])
