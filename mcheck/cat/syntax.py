"""The tree of a cat file as written, before names are resolved. Offsets are those of the file's text.

These classes are not frozen because a frozen ``__init__`` costs three times as much; nobody changes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcheck.cat.scanner import Source


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Name:
    text: str
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Zero:
    """``0``."""

    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Unary:
    """``op``: ``+ * ? ^-1 ~ []``."""

    op: str
    arg: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Binary:
    """``op``: ``| & \\ ; *``."""

    op: str
    left: Expr
    right: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Call:
    function: Name
    args: tuple[Expr, ...]
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class LetIn:
    """``let bindings in body``."""

    bindings: tuple[Binding, ...]
    body: Expr
    start: int
    end: int


Expr = Name | Zero | Unary | Binary | Call | LetIn


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Binding:
    """``name = body``, or ``name(params) = body`` if ``params`` is not ``None``."""

    name: Name
    params: tuple[Name, ...] | None
    body: Expr


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class LetStatement:
    recursive: bool
    bindings: tuple[Binding, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class TestStatement:
    """``[flag] [~]test body [as name]``."""

    test: str
    negated: bool
    flag: bool
    body: Expr
    name: str | None
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ShowStatement:
    """``show e as name`` or ``show a, b``; ``unshow a, b``."""

    hide: bool
    items: tuple[tuple[Expr, str], ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class IncludeStatement:
    file: str
    keyword: int
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ProcedureStatement:
    name: Name
    params: tuple[Name, ...]
    body: tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class CallStatement:
    name: Name
    args: tuple[Expr, ...]
    label: str | None
    start: int
    end: int


Statement = LetStatement | TestStatement | ShowStatement | IncludeStatement | ProcedureStatement | CallStatement


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class File:
    """``name`` is ``None`` where the first line gives none; the title that gives it ends at ``title_end``."""

    source: Source
    name: str | None
    title_end: int
    statements: tuple[Statement, ...]
    options: tuple[tuple[str, str], ...]
    doc: str
