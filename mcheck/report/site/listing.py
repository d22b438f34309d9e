"""The listing of a program: its objects, and a column of code per thread or role."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING

from mcheck.base.records import dataclass

if TYPE_CHECKING:
    from mcheck.ir.program import Program

_ROLE = re.compile(r"^[ \t]*(?P<role>[A-Za-z_][\w.]*)[ \t]*@(?P<place>[^{};|]*)\{", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\(\*.*?\*\)|\"[^\"\n]*\"", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """The code of one thread of a table, or of one role with its placement."""

    title: str
    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The parts of a listing: ``objects`` is the init block as written; in a ``table`` the rows are aligned."""

    objects: tuple[str, ...]
    columns: tuple[Column, ...]
    table: bool

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The lines of the columns, row by row."""
        height = max((len(c.lines) for c in self.columns), default=0)
        return tuple(tuple(c.lines[k] if k < len(c.lines) else "" for c in self.columns) for k in range(height))


def make_listing(program: Program, source: str) -> Listing:
    """The listing of a program, from its text if possible, otherwise from its operations."""
    blind = blank_comments(source)  # braces in comments do not count
    objects: tuple[str, ...] = ()
    start = blind.find("{")
    end = _closing(blind, start)
    if 0 <= start < end:
        objects = _lines(source[start + 1 : end])
    if program.dialect:
        found = _table(source, blind, end)
        return Listing(objects, found or _operations(program), bool(found))
    columns = []
    at = end + 1
    while (header := _ROLE.search(blind, at)) is not None:
        close = _closing(blind, header.end() - 1)
        if close < 0:
            break
        columns.append(Column(header["role"], " ".join(header["place"].split()), _lines(source[header.end() : close])))
        at = close + 1
    return Listing(objects, tuple(columns) or _operations(program), False)


def blank_comments(source: str) -> str:
    """The text with comments and quoted strings replaced by blanks, so that lines and columns are kept."""
    return _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)


def _closing(text: str, start: int) -> int:
    depth = 0
    for k in range(max(start, 0), len(text)):
        if text[k] == "{":
            depth += 1
        elif text[k] == "}":
            depth -= 1
            if not depth:
                return k
    return -1


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in dedent(text.strip("\n")).strip().splitlines())


def _table(source: str, blind: str, end: int) -> tuple[Column, ...]:
    rows = []
    for line, plain in zip(source[end + 1 :].splitlines(), blind[end + 1 :].splitlines(), strict=False):
        if not plain.strip():
            continue
        if not plain.rstrip().endswith(";"):
            break
        rows.append([cell.strip() for cell in line.rstrip().rstrip(";").split("|")])
    if not rows or "@" not in rows[0][0]:
        return ()
    columns = []
    for k, head in enumerate(rows[0]):
        title, _, place = head.partition("@")
        columns.append(Column(title.strip(), place.strip(), tuple(r[k] if k < len(r) else "" for r in rows[1:])))
    return tuple(columns)


def _operations(program: Program) -> tuple[Column, ...]:
    return tuple(
        Column(t.name, f"cta {t.place.cta.number}", tuple(" ".join(op.text.split()) for op in t.code))
        for t in program.threads
    )
