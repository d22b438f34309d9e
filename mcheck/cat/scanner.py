"""Characters of a cat file to tokens.

Names are ``_?letter`` then letters, digits, ``_``, ``.``, ``-``, with an optional final quote, as in herd's lexer; so
``po-loc`` is one name and the inverse is only ``^-1``. Comments are ``(* *)``, ``/* */``, ``//`` and ``#``. Those with
stars nest in herd and do not in Dat3M: one that nesting never closes ends at its first ``*)``. Comments of the form
``(* mcheck: key = value *)`` are options of the model.

One compiled pattern and three parallel lists: reading a model of a thousand tokens takes about a millisecond, while
importing a parser generator and building its tables (measured with lark: 40 ms to import, 25 ms to build this grammar)
would cost more than all the rest of a small run.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import field
from typing import Final

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.cat.messages import error

NAME: Final = "name"
STRING: Final = "string"
END: Final = "end of file"

KEYWORDS: Final = frozenset(
    {"let", "rec", "and", "when", "in", "fun", "acyclic", "irreflexive", "empty", "show", "unshow", "as", "flag"}
    | {"undefined_unless", "include", "procedure", "call", "begin", "end", "enum", "debug", "match", "with", "forall"}
    | {"from", "do", "try", "if", "then", "else", "yield", "instructions", "default", "subset", "not", "assert"}
)

_TOKEN: Final = re.compile(
    r"[ \t\r\n\f]*(?:"
    r"(?P<name>_?[A-Za-z][A-Za-z0-9_.\-]*'?)"
    r"|(?P<inverse>\^[ \t]*-1)"
    r"|(?P<comment>\(\*|/\*)"
    r"|(?P<op>\|\||&&|\+\+|->|\^[+*?]|-1|[|;&\\~?+*()\[\]{},=_0^'])"
    r"|(?P<line>(?://|#)[^\n]*)"
    r'|(?P<string>"[^"\n]*")'
    r"|(?P<end>\Z))"
)
_MARK: Final = re.compile(r"\(\*|\*\)")
_OPTION: Final = re.compile(r"\(\*\s*mcheck\s*:(?P<body>.*)\*\)\Z", re.DOTALL)
_PAIR: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*=\s*(\S+)\s*\Z")


@dataclass(slots=True, eq=False)
class Source:
    """A text and where its lines start."""

    path: str
    text: str
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [0]
        self.starts.extend(match.end() for match in re.finditer("\n", self.text))

    def span(self, start: int, end: int) -> Span:
        """The place of ``text[start:end]``, cut at the end of its first line."""
        line = bisect_right(self.starts, start)
        first = self.starts[line - 1]
        last = self.starts[line] - 1 if line < len(self.starts) else len(self.text)
        return Span(self.path, line, start - first + 1, max(1, min(end, last) - start))


@dataclass(slots=True, eq=False)
class Tokens:
    """Parallel lists: ``kinds`` (a keyword or operator is its own kind), ``texts``, ``starts``, ``ends``."""

    source: Source
    kinds: list[str]
    texts: list[str]
    starts: list[int]
    ends: list[int]
    options: list[tuple[str, str, Span]]
    doc: str


def scan(source: Source) -> Tokens:
    """All tokens of ``source``, ended by one of kind ``END``; options and the leading comment on the way."""
    text = source.text
    match_at = _TOKEN.match
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    options: list[tuple[str, str, Span]] = []
    doc: list[str] = []
    nested: dict[int, int] = {}
    position = 0
    while True:
        match = match_at(text, position)
        if match is None:
            raise _bad_character(source, position)
        group = match.lastgroup
        start, end = match.span(group or 0)
        word = text[start:end]
        position = end
        if group == "name":
            kinds.append(word if word in KEYWORDS else NAME)
        elif group == "op":
            kinds.append(word)
        elif group == "inverse":
            kinds.append("^-1")
        elif group == "string":
            kinds.append(STRING)
            word = word[1:-1]
        elif group == "line":
            if _only_name(kinds):
                doc.append(word.lstrip("/#").strip())
            continue
        elif group == "comment":
            position = _end_of_comment(source, start, nested)
            comment = text[start:position]
            option = _OPTION.match(comment)
            if option is not None:
                options.append(_option(source, option.group("body"), start, position))
            elif _only_name(kinds):
                doc.append(comment[2:-2].strip())
            continue
        else:
            kinds.append(END)
        texts.append(word)
        starts.append(start)
        ends.append(end)
        if group == "end":
            return Tokens(source, kinds, texts, starts, ends, options, _plain("\n".join(doc)))


def _only_name(kinds: list[str]) -> bool:
    """No statement has started yet."""
    return len(kinds) < 3 and all(kind in (NAME, STRING) for kind in kinds)


def _plain(doc: str) -> str:
    """Comment text without the stars that decorate its lines."""
    return "\n".join(line.strip().lstrip("*").strip() for line in doc.splitlines()).strip()


def _end_of_comment(source: Source, start: int, ends: dict[int, int]) -> int:
    """Where the comment at ``start`` ends; ``ends`` are those of the comments that nest, found at the first call."""
    text = source.text
    if text.startswith("/*", start):
        end = text.find("*/", start + 2)
    else:
        if not ends:
            ends.update(_nested(text))
        if start in ends:
            return ends[start]
        end = text.find("*)", start + 2)
    if end < 0:
        raise error("CAT002", source.span(start, start + 2))
    return end + 2


def _nested(text: str) -> dict[int, int]:
    """The end of each ``(*`` that the ``*)`` of its depth closes, by its start."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for mark in _MARK.finditer(text):
        if mark.group() == "(*":
            opened.append(mark.start())
        elif opened:
            ends[opened.pop()] = mark.end()
    return ends


def _option(source: Source, body: str, start: int, end: int) -> tuple[str, str, Span]:
    pair = _PAIR.match(body)
    span = source.span(start, end)
    if pair is None:
        raise error("CAT005", span)
    return pair.group(1), pair.group(2), span


def _bad_character(source: Source, position: int) -> Exception:
    blank = re.compile(r"[ \t\r\n\f]*").match(source.text, position)
    start = blank.end() if blank else position
    if source.text[start] == '"':
        return error("CAT003", source.span(start, start + 1))
    return error("CAT001", source.span(start, start + 1), what=repr(source.text[start]))
