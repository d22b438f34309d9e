"""Forms of states, compiled from the declarations of their attributes (``mcheck.base.declared_state``).

The form of an object is a tuple with the name of each named attribute, in the order of the declaration. A kind of name
(``Naming``) has one function (``names``), which is called with the builder, the value, the object and a context that
the holder of the object gives. A value that names itself needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mcheck.base.declared_state import IN_OWNER, PLAIN, Naming, named_attributes
from mcheck.engines.protocol.state.sync_objects import SyncOperation

Part = tuple[object, ...]
Name = Callable[[Any, Any, Any, Any], object]
Former = Callable[[Any, Any, Any], Part]
"""A function that returns the form of an object, given the builder, the object and a context."""
Operations = Callable[[Any, Any], Iterable[SyncOperation]]

NAMES: dict[Naming, Name] = {}
INLINE: dict[Naming, str] = {}
"""The expressions of those that are inlined."""
LIVE_OPERATIONS: dict[Naming, Operations] = {}
"""For attributes that hold operations on a synchronisation object: those that a time is compared with."""
_FORMERS: dict[object, Former] = {}
_LIVE: dict[type[Any], tuple[tuple[str, Operations], ...]] = {}


def names(naming: Naming, live: Operations | None = None) -> Callable[[Name], Name]:
    """Register the function for a kind of name, and one for the ``live`` operations of such a value."""

    def register(name: Name) -> Name:
        NAMES[naming] = name
        if live is not None:
            LIVE_OPERATIONS[naming] = live
        return name

    return register


def inline_names(naming: Naming, text: str) -> None:
    """Register the expression for a kind of name, in terms of ``b`` and ``o``, the builder and the object; ``$`` is the
    value.
    """
    NAMES[naming] = eval(f"lambda b, v, o, c: ({text.replace('$', 'v')})")  # noqa: S307 - written in this package
    INLINE[naming] = text


def former_of(cls: type[Any], apart: frozenset[Naming] = frozenset()) -> Former:
    """Return the compiled former of a class, which passes over the kinds of names that are kept ``apart``."""
    found = _FORMERS.get((cls, apart) if apart else cls)
    return _compile(cls, apart) if found is None else found


def _compile(cls: type[Any], apart: frozenset[Naming]) -> Former:
    scope: dict[str, Any] = {}
    parts = []
    for attribute, naming in named_attributes(cls):
        if naming in apart or naming == IN_OWNER:
            continue
        if naming == PLAIN:
            parts.append(f"o.{attribute},")
        elif naming in INLINE:
            parts.append(f"({INLINE[naming].replace('$', f'o.{attribute}')}),")
        else:
            scope[f"_name_{attribute}"] = NAMES[naming]
            parts.append(f"_name_{attribute}(b, o.{attribute}, o, c),")
    exec(f"def form(b, o, c=None):\n return ({' '.join(parts)})", scope)  # noqa: S102 - made of names of attributes
    former: Former = scope["form"]
    _FORMERS[(cls, apart) if apart else cls] = former
    return former


def live_operations(builder: object, owner: object) -> Iterable[SyncOperation]:
    """Yield the operations of an object that a time is compared with."""
    cls = type(owner)
    if cls not in _LIVE:
        _LIVE[cls] = tuple((a, LIVE_OPERATIONS[by]) for a, by in named_attributes(cls) if by in LIVE_OPERATIONS)
    for attribute, operations in _LIVE[cls]:
        yield from operations(builder, getattr(owner, attribute))
