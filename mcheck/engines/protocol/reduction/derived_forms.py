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
LIVE_OPERATIONS: dict[Naming, Operations] = {}
"""For attributes that hold operations on a synchronisation object: those that a time is compared with."""
_FORMERS: dict[tuple[type[Any], frozenset[Naming]], Former] = {}


def names(naming: Naming, live: Operations | None = None) -> Callable[[Name], Name]:
    """Register the function for a kind of name, and one for the ``live`` operations of such a value."""

    def register(name: Name) -> Name:
        NAMES[naming] = name
        if live is not None:
            LIVE_OPERATIONS[naming] = live
        return name

    return register


def former_of(cls: type[Any], apart: frozenset[Naming] = frozenset()) -> Former:
    """Return the compiled former of a class, which passes over the kinds of names that are kept ``apart``."""
    found = _FORMERS.get((cls, apart))
    return _compile(cls, apart) if found is None else found


def _compile(cls: type[Any], apart: frozenset[Naming]) -> Former:
    scope: dict[str, Any] = {}
    parts = []
    for attribute, naming in named_attributes(cls):
        if naming in apart or naming == IN_OWNER:
            continue
        if naming == PLAIN:
            parts.append(f"o.{attribute},")
        else:
            scope[f"_name_{attribute}"] = NAMES[naming]
            parts.append(f"_name_{attribute}(b, o.{attribute}, o, c),")
    exec(f"def form(b, o, c=None):\n return ({' '.join(parts)})", scope)  # noqa: S102 - made of names of attributes
    former: Former = scope["form"]
    _FORMERS[cls, apart] = former
    return former


def live_operations(builder: object, owner: object) -> Iterable[SyncOperation]:
    """Yield the operations of an object that a time is compared with."""
    for attribute, naming in named_attributes(type(owner)):
        if naming in LIVE_OPERATIONS:
            yield from LIVE_OPERATIONS[naming](builder, getattr(owner, attribute))
