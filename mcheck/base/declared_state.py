"""Declarations of mutable state: for every attribute of a class how it is copied, and how canonical forms name it.

An execution is copied, its state is compared with earlier ones, and a rotation renames what it consists of. An
attribute that one of the three passes over makes a proof wrong. So each class of a state has one table, next to the
class (``declare_state``), with a line for every attribute. A data class whose table lacks a field, or has one too many,
cannot be imported. Copies are compiled from the tables (``copier_of``), and so are canonical forms
(``mcheck.engines.protocol.reduction.derived_forms``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcheck.base.records import dataclass

Copier = Callable[[Any, dict[int, object]], Any]
"""A function that returns the copy of an object, given the copies made so far by the identity of the original."""


@dataclass(frozen=True, slots=True)
class Copying:
    """How the value of an attribute is copied: a container of ``parts``, or a declared ``state``."""

    kind: str
    parts: tuple[Copying, ...] = ()
    state: str = ""
    read_from: str = ""
    """The property that has the value to copy, if it is another one."""


SHARED = Copying("shared")
"""The copy has the same value: it never changes, or belongs to all executions."""
SHALLOW = Copying("shallow")
"""By the value's own method ``copy``; what it contains is shared."""
ABSENT = Copying("absent")
"""The copy has none."""
REMADE = Copying("remade")
"""Whoever copies sets it."""
REFERENCE = Copying("reference")
"""A state of any declared class, a list, or a value that never changes."""


def state(name: str) -> Copying:
    """A state of the class with this name: one copy each, so that aliases remain aliases."""
    return Copying("state", state=name)


def read_from(name: str, part: Copying) -> Copying:
    """What another property of the original holds, copied as ``part``, unless the attribute is ``None``."""
    return Copying("property", (part,), read_from=name)


def optional(part: Copying) -> Copying:
    return Copying("optional", (part,))


def listed(part: Copying) -> Copying:
    return Copying("list", (part,))


def tupled(part: Copying) -> Copying:
    return Copying("tuple", (part,))


def mapped(part: Copying) -> Copying:
    """A mapping whose keys are shared."""
    return Copying("mapping", (part,))


def row(*parts: Copying) -> Copying:
    """A tuple with so many members."""
    return Copying("row", parts)


@dataclass(frozen=True, slots=True)
class Naming:
    """How canonical forms name the values of an attribute.

    ``rotated`` says that the name depends on the rotation of stages and parities.
    """

    what: str
    rotated: bool = False


@dataclass(frozen=True, slots=True)
class Unnamed:
    """The reason why canonical forms need not name an attribute."""

    reason: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """How one attribute is copied and named."""

    copied: Copying
    named: Naming | Unnamed


PLAIN = Naming("value")
"""The value itself."""
WRITTEN_OUT = Naming("value, written out")
"""The value as ``repr`` writes it."""
IN_OWNER = Naming("within the name of the attribute that holds the object")
"""Named by the function that names another attribute, of this object or of the one that holds it."""
VALUE = Attribute(SHARED, PLAIN)
"""A value that never changes and names itself."""

_DECLARED: dict[type[Any], Mapping[str, Attribute]] = {}
_BY_NAME: dict[str, type[Any]] = {}
_COPIERS: dict[type[Any], Copier] = {}
_SCOPE: dict[str, Any] = {"_new": object.__new__}
"""What compiled copiers refer to, each other included."""


def declare_state(cls: type[Any], **attributes: Attribute) -> None:
    """Declare the attributes of a class of states."""
    if cls.__name__ in _BY_NAME:
        raise TypeError(f"two classes of states are called {cls.__name__}")
    if dataclasses.is_dataclass(cls):
        _check_complete(cls.__name__, {f.name for f in dataclasses.fields(cls)}, attributes)
    _DECLARED[cls] = attributes
    _BY_NAME[cls.__name__] = cls


def declared_classes() -> tuple[type[Any], ...]:
    """Return the classes that have been declared."""
    return tuple(_DECLARED)


def attributes_of(cls: type[Any]) -> Mapping[str, Attribute]:
    """Return the declared attributes of a class, in order."""
    return _DECLARED[cls]


def named_attributes(cls: type[Any]) -> Iterator[tuple[str, Naming]]:
    """Yield the attributes that canonical forms name, in order."""
    for name, attribute in _DECLARED[cls].items():
        if isinstance(attribute.named, Naming):
            yield name, attribute.named


def check_declared(value: object) -> None:
    """Raise ``TypeError`` if an object without slots has other attributes than its class declares."""
    _check_complete(type(value).__name__, vars(value).keys(), _DECLARED[type(value)])


def _check_complete(name: str, held: Any, attributes: Mapping[str, Attribute]) -> None:
    if held != attributes.keys():
        raise TypeError(f"declared and present attributes of {name} differ: {sorted(held ^ attributes.keys())}")


# --- copies ---------------------------------------------------------------------------------------------------------


def copier_of(cls: type[Any]) -> Copier:
    """Return the compiled copier of a class of states."""
    found = _COPIERS.get(cls)
    return _compile(cls) if found is None else found


def _copier_name(state_name: str) -> str:
    return f"_copy_{state_name}"


def _compile(cls: type[Any]) -> Copier:
    """Compile the copiers of a class and of all that its states refer to."""
    name = _copier_name(cls.__name__)
    lines = [
        f"def {name}(o, made):", " out = made.get(id(o))", " if out is not None:", "  return out",
        f" out = made[id(o)] = _new({cls.__name__})",
    ]  # fmt: skip
    for attribute, declared in _DECLARED[cls].items():
        if declared.copied != REMADE:
            lines.append(f" out.{attribute} = {_text(declared.copied, f'o.{attribute}', 0)}")
    _SCOPE[cls.__name__] = cls
    _SCOPE.setdefault("_refer", _copy_reference)
    exec("\n".join([*lines, " return out"]), _SCOPE)  # noqa: S102 - made of names of attributes
    copier: Copier = _SCOPE[name]
    _COPIERS[cls] = copier
    for other in dict.fromkeys(x for declared in _DECLARED[cls].values() for x in _states_in(declared.copied)):
        copier_of(_BY_NAME[other])
    return copier


def _text(copying: Copying, value: str, depth: int) -> str:
    """Return the expression for the copy of a value, which is an expression without calls."""
    inner = [_text(part, f"x{depth}", depth + 1) for part in copying.parts if copying.kind != "row"]
    match copying.kind:
        case "shallow":
            return f"{value}.copy()"
        case "absent":
            return "None"
        case "reference":
            return f"_refer({value}, made)"
        case "state":
            return f"{_copier_name(copying.state)}({value}, made)"
        case "property":
            return f"None if {value} is None else {_text(copying.parts[0], f'o.{copying.read_from}', depth)}"
        case "optional":
            return f"None if {value} is None else {_text(copying.parts[0], value, depth)}"
        case "list":
            return f"[{inner[0]} for x{depth} in {value}]"
        case "tuple":
            return f"{value} and tuple([{inner[0]} for x{depth} in {value}])"
        case "mapping":
            return f"{{k: {inner[0]} for k, x{depth} in {value}.items()}}"
        case "row":
            members = (_text(part, f"{value}[{k}]", depth) for k, part in enumerate(copying.parts))
            return f"({', '.join(f'({text})' for text in members)},)"
    return value


def _states_in(copying: Copying) -> Iterator[str]:
    """Yield the names of the classes whose states a value contains."""
    if copying.state:
        yield copying.state
    for part in copying.parts:
        yield from _states_in(part)


def _copy_reference(value: object, made: dict[int, object]) -> object:
    if type(value) in _DECLARED:
        return copier_of(type(value))(value, made)
    return list(value) if isinstance(value, list) else value
