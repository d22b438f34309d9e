"""Data classes like the standard library's, created in half the time, and frozen ones pickled in two thirds.

Up to Python 3.12 ``dataclasses.dataclass`` compiles the methods of a class one by one, which was a third of the time
that ``mcheck`` takes to start; here they are compiled as one text. Pickling does not look up the fields each time.
An instance with many fields is created in a third of the time: while it is filled in, its class is an unfrozen one of
the same layout. Everything else (fields, slots, inheritance, ``replace``) is the standard library's.
"""

from __future__ import annotations

import dataclasses
import sys
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple

__all__ = ["dataclass"]

_FIELD: Any = vars(dataclasses)["_FIELD"]
_ANNOTATED_LATE = sys.version_info >= (3, 14)

MANY = 6
"""The number of fields from which filling in an instance of an unfrozen class pays off."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass

    Field = dataclasses.Field[Any]
else:

    def dataclass(*, frozen=False, slots=False, kw_only=False, **more):
        """``dataclasses.dataclass``, with a faster implementation for classes with slots."""
        if slots and more.keys() <= (set() if frozen else {"eq", "repr", "match_args"}):
            shape = _Shape(frozen, kw_only, **more)
            return lambda cls: _made(cls, shape)
        return dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only, **more)


@dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)
class _Like:
    """A class whose parameters are those of all that are made here."""


class _Shape(NamedTuple):
    """What a class is asked to be: the arguments of ``dataclass``."""

    frozen: bool
    kw_only: bool
    eq: bool = True
    repr: bool = True
    match_args: bool = True


def _made(cls: type[Any], shape: _Shape) -> type[Any]:
    own = {name for name, value in vars(cls).items() if value is not None}  # __eq__ leaves None for __hash__
    fields = _fields(cls, kw_only=shape.kw_only)
    made = _with_slots(cls, fields, shape)
    compiled = ("__init__", *(["__eq__"] if shape.eq else []), *(["__hash__"] if shape.frozen else []))
    methods: dict[str, Any] = {name: _Later(made, name, frozen=shape.frozen) for name in compiled}
    if shape.repr:
        methods["__repr__"] = _repr(tuple(f.name for f in fields.values() if f.repr))
    if shape.frozen:
        methods["__getstate__"], methods["__setstate__"] = _state(tuple(fields))
        methods["__setattr__"], methods["__delattr__"] = _frozen(made, frozenset(fields))
    for name, method in methods.items():
        if name in own and name not in ("__setattr__", "__delattr__"):
            continue
        if not isinstance(method, _Later):
            method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
        setattr(made, name, method)
    return made


def _fields(cls: type[Any], *, kw_only: bool) -> dict[str, Field]:
    """The fields of a class, those of its bases first."""
    fields: dict[str, Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        fields.update(getattr(base, "__dataclass_fields__", {}))
    for name, kind in cls.__annotations__.items() if "__annotations__" in vars(cls) or _ANNOTATED_LATE else ():
        if str(kind).startswith(("ClassVar", "typing.ClassVar")):
            continue
        default = vars(cls).get(name, dataclasses.MISSING)
        field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        field.name, field.type, field._field_type = name, kind, _FIELD  # noqa: SLF001 - as dataclasses itself does
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = kw_only
        fields[name] = field
    return fields


def _with_slots(cls: type[Any], fields: dict[str, Field], shape: _Shape) -> type[Any]:
    """The class with slots for its fields, and what the functions of ``dataclasses`` want to find."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    scope = {name: value for name, value in vars(cls).items() if name not in fields}
    for name in ("__dict__", "__weakref__"):
        scope.pop(name, None)
    scope["__slots__"] = tuple(name for name in fields if name not in inherited)
    scope["__dataclass_fields__"] = fields
    scope["__dataclass_params__"] = vars(_Like)["__dataclass_params__"]
    if shape.eq and not shape.frozen:
        scope.setdefault("__hash__", None)
    if shape.match_args and "__match_args__" not in scope:
        scope["__match_args__"] = tuple(f.name for f in fields.values() if f.init and not f.kw_only)
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, scope)
    made.__qualname__ = cls.__qualname__
    return made


class _Later:
    """A method that is compiled with its fellows when one of them is looked up: many classes have no instance."""

    __slots__ = ("frozen", "made", "name")

    def __init__(self, made: type[Any], name: str, *, frozen: bool) -> None:
        self.made, self.name, self.frozen = made, name, frozen

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        for name, method in _compiled(self.made, dataclasses.fields(self.made), frozen=self.frozen).items():
            if isinstance(vars(self.made).get(name), _Later):
                method.__name__, method.__qualname__ = name, f"{self.made.__qualname__}.{name}"
                setattr(self.made, name, method)
        return vars(self.made)[self.name].__get__(instance, owner)


def _compiled(made: type[Any], fields: tuple[Field, ...], *, frozen: bool) -> dict[str, Callable[..., Any]]:
    """The compiled ``__init__``, ``__eq__`` and ``__hash__``, which engines call millions of times."""
    scope: dict[str, Any] = {"_put": object.__setattr__, "_missing": dataclasses.MISSING}
    compared = [f.name for f in fields if f.compare]
    hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
    if frozen and len(fields) >= MANY:
        scope["_frozen"], scope["_open"] = made, _opened(made)
    text = (
        *_init(made, fields, scope, frozen=frozen),
        "def __eq__(self, other):\n",
        " if other.__class__ is not self.__class__:\n  return NotImplemented\n",
        f" return {_tuple('self', compared)} == {_tuple('other', compared)}\n",
        f"def __hash__(self):\n return hash({_tuple('self', hashed)})\n",
    )
    exec("".join(text), scope)  # noqa: S102 - made of names of fields, which are identifiers
    return {name: scope[name] for name in ("__init__", "__eq__", "__hash__")}


def _tuple(owner: str, names: list[str]) -> str:
    """The text of a tuple of attributes of ``owner``."""
    return "(" + "".join(f"{owner}.{name}," for name in names) + ")"


def _init(made: type[Any], fields: tuple[Field, ...], scope: dict[str, Any], *, frozen: bool) -> Iterable[str]:
    """The text of ``__init__``."""
    positional, named, values = ["self"], ["*"], {}
    for f in fields:
        name, parameter, value = f.name, f.name, f.name
        if f.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = f.default
            parameter = f"{name}=_default_{name}"
            value = name if f.init else f"_default_{name}"
        elif f.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = f.default_factory
            parameter = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}" if f.init else f"_make_{name}()"
        elif not f.init:  # set later, where it is needed
            continue
        if f.init:
            (named if f.kw_only else positional).append(parameter)
        values[name] = value
    put = "_put(self, {!r}, {})" if frozen else "self.{} = {}"
    lines = [put.format(name, value) for name, value in values.items()] or ["pass"]
    if "_open" in scope:
        filled = "_put(self, '__class__', _open)", *(f"self.{name} = {value}" for name, value in values.items())
        inside = [f" {line}" for line in (*filled, "self.__class__ = _frozen")]
        lines = ["if self.__class__ is _frozen:", *inside, "else:", *(f" {line}" for line in lines)]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    yield f"def __init__({', '.join(positional + (named if named[1:] else []))}):\n"
    yield from (f" {line}\n" for line in lines)


def _opened(made: type[Any]) -> type[Any]:
    """An unfrozen class of the same layout."""
    own = {"__slots__": made.__slots__, "__setattr__": object.__setattr__, "__module__": made.__module__}
    return type(made.__name__, made.__bases__, own)


def _repr(names: tuple[str, ...]) -> Callable[[object], str]:
    def method(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return recursive_repr()(method)


def _state(names: tuple[str, ...]) -> tuple[Callable[[object], tuple[Any, ...]], Callable[..., None]]:
    """``__getstate__`` and ``__setstate__``: pickles hold the values of all fields."""
    several = attrgetter(*names) if len(names) > 1 else None

    def getstate(self: object) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names) if several is None else several(self)

    def setstate(self: object, state: tuple[Any, ...]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return getstate, setstate


def _frozen(made: type[Any], names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """``__setattr__`` and ``__delattr__`` of a frozen class; a subclass may have further, mutable attributes."""

    def put(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def remove(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return put, remove
