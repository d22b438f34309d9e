"""The tree of a cat file as written, before names are resolved. Offsets are those of the file's text.

These classes are not frozen because a frozen ``__init__`` costs three times as much; nobody changes them.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
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
    """``op``: ``| & \\ ; * ++``."""

    op: str
    left: Expr
    right: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Call:
    """``function(args)``; ``f x y`` is a call of the call ``f x``."""

    function: Name | Call
    args: tuple[Expr, ...]
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class LetIn:
    """``let [rec] bindings in body``."""

    recursive: bool
    bindings: tuple[Binding, ...]
    body: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Items:
    """``(a, b)`` if ``braces`` is false, else ``{a, b}``."""

    braces: bool
    items: tuple[Expr, ...]
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Fun:
    """``fun params -> body``."""

    params: tuple[Name, ...]
    body: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Try:
    """``try body with other``: ``other`` where ``body`` has a name that nothing binds."""

    body: Expr
    other: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Condition:
    """``op``: ``variant`` (its name in ``text``), ``not``, ``&&``, ``||`` of conditions; ``=``, ``subset``, ``in`` of
    expressions.
    """

    op: str
    text: str
    parts: tuple[Condition, ...]
    operands: tuple[Expr, ...]
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class If:
    """``if condition then yes else no``."""

    condition: Condition
    yes: Expr
    no: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Match:
    """``match subject with || {} -> empty || element ++ rest -> body end``."""

    subject: Expr
    empty: Expr
    element: Name
    rest: Name
    body: Expr
    start: int
    end: int


Expr = Name | Zero | Unary | Binary | Call | LetIn | Items | Fun | Try | If | Match


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Binding:
    """``name = body``; ``name(params) = body`` if ``params`` is not ``None``; ``(a, b) = body``, with two ``names``."""

    names: tuple[Name, ...]
    params: tuple[Name, ...] | None
    body: Expr

    @property
    def name(self) -> Name:
        return self.names[0]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class LetStatement:
    recursive: bool
    bindings: tuple[Binding, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class TestStatement:
    """``[flag] [~]test body [as name]``; ``undefined_unless test`` is the flag of its negation."""

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


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class WithStatement:
    """``with name from body``: an execution for each member of ``body``."""

    name: Name
    body: Expr
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class IfStatement:
    """``if condition yes else no end``."""

    condition: Condition
    yes: tuple[Statement, ...]
    no: tuple[Statement, ...]


Statement = (
    LetStatement
    | TestStatement
    | ShowStatement
    | IncludeStatement
    | ProcedureStatement
    | CallStatement
    | WithStatement
    | IfStatement
)


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class File:
    """``name`` is ``None`` where the first line gives none; the title that gives it ends at ``title_end``.

    ``words`` are the tokens of the file, each once.
    """

    source: Source
    name: str | None
    title_end: int
    statements: tuple[Statement, ...]
    options: tuple[tuple[str, str], ...]
    doc: str
    words: frozenset[str]
