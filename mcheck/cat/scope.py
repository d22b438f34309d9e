"""The symbol table of the cat checker: what names are bound to."""

from __future__ import annotations

from typing import Final

from mcheck.base.records import dataclass
from mcheck.cat.ast import Base, Empty, Kind, Node, Op1
from mcheck.cat.fold import NO_REL, NO_SET, unary
from mcheck.cat.messages import error, suggest
from mcheck.cat.names import BASE
from mcheck.cat.scanner import Source
from mcheck.cat.syntax import Expr, Name
from mcheck.cat.syntax import Statement as RawStatement

SET: Final = Kind.SET

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


@dataclass(frozen=True, slots=True)
class Primitive:
    """A function whose values are sets of sets: ``mcheck.cat.orders`` says what each gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple or, with ``braces``, a set of values that are known one by one: ``(a, b)``, ``{a, b}``."""

    braces: bool
    items: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Classes:
    """The set ``of`` cut by location: a set of sets."""

    of: Node


@dataclass(frozen=True, slots=True)
class Families:
    """For each class of ``of`` by location the total orders of it that extend ``order``: a set of sets of relations."""

    of: Node
    order: Node


@dataclass(frozen=True, slots=True)
class Orders:
    """The relations that order each class of ``of`` by location totally and extend ``order``."""

    of: Node
    order: Node


Entry = Node | Function | Procedure | Param | Primitive | Items | Classes | Families | Orders
Scope = dict[str, Entry]
_BUILTINS: Final[Scope] = {
    name: Function(name, ("x",), [kind], Kind.REL if op == "[]" else Kind.SET, None, None, {})
    for name, (kind, op) in BUILTIN.items()
}
PRIMITIVES: Final = ("classes-loc", "linearisations", "tag2events")
_BASE_SCOPE: Final[Scope] = {name: Base(name, row.kind) for name, row in BASE.items()}


def initial_scope() -> Scope:
    """The base names and built-in functions."""
    return {**_BASE_SCOPE, **_BUILTINS, **{name: Primitive(name) for name in PRIMITIVES}}


def lookup(name: Name, scope: Scope, source: Source) -> Entry:
    entry = scope.get(name.text)
    if entry is None:
        span = source.span(name.start, name.end)
        raise error("CAT020", span, what=name.text, hint=suggest(name.text, list(scope)))
    return entry


def kind_word(entry: Entry) -> str:
    """What ``entry`` is, for messages."""
    match entry:
        case Function() | Primitive():
            return "function"
        case Procedure():
            return "procedure"
        case Param():
            return "parameter"
        case Items():
            return "set of sets" if entry.braces else "tuple"
        case Classes() | Families() | Orders():
            return "set of sets"
    return entry.kind.value


def words_of_kind(node: Node, kind: Kind) -> Node:
    """``node``, where it is still of either kind as one of ``kind``."""
    if node is ZERO:
        return NO_SET if kind is SET else NO_REL
    if node is ALL:
        return unary("~", NO_SET if kind is SET else NO_REL)
    return node
