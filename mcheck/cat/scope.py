"""What a name can stand for while a cat file is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcheck.cat.ast import Base, Empty, Kind, Node, Op1
from mcheck.cat.messages import error, suggest
from mcheck.cat.names import BASE
from mcheck.cat.scanner import Source
from mcheck.cat.syntax import Expr, Name
from mcheck.cat.syntax import Statement as RawStatement

# ``0`` and ``~0`` are of either kind until an operator decides: these very objects stand for them while checking.
ZERO: Final = Empty(Kind.REL)
ALL: Final = Op1("~", ZERO, Kind.REL)

BUILTIN: Final = {"domain": (Kind.REL, "domain"), "range": (Kind.REL, "range"), "toid": (Kind.SET, "[]")}
"""Functions of the language: the kind of their argument, the operator they stand for."""


@dataclass(slots=True, eq=False)
class Function:
    """A function or a built-in; ``kinds`` of its parameters and ``result``, ``None`` where either will do."""

    name: str
    params: tuple[str, ...]
    kinds: list[Kind | None]
    result: Kind | None
    body: Expr | None
    source: Source | None
    scope: Scope


@dataclass(slots=True, eq=False)
class Procedure:
    name: str
    params: tuple[str, ...]
    body: tuple[RawStatement, ...]
    source: Source
    scope: Scope


@dataclass(slots=True, eq=False)
class Param:
    """A parameter while its function's body is looked at for the first time."""

    name: str
    kind: Kind | None = None


Entry = Node | Function | Procedure | Param
Scope = dict[str, Entry]
_BUILTINS: Final[Scope] = {
    name: Function(name, ("x",), [kind], Kind.REL if op == "[]" else Kind.SET, None, None, {})
    for name, (kind, op) in BUILTIN.items()
}
_BASE_SCOPE: Final[Scope] = {name: Base(name, row.kind) for name, row in BASE.items()}


def initial_scope() -> Scope:
    """The base names and built-in functions."""
    return {**_BASE_SCOPE, **_BUILTINS}


def lookup(name: Name, scope: Scope, source: Source) -> Entry:
    entry = scope.get(name.text)
    if entry is None:
        span = source.span(name.start, name.end)
        raise error("CAT020", span, what=name.text, hint=suggest(name.text, list(scope)))
    return entry


def kind_word(entry: Entry) -> str:
    if isinstance(entry, Function):
        return "function"
    if isinstance(entry, Procedure):
        return "procedure"
    if isinstance(entry, Param):
        return "parameter"
    return entry.kind.value
