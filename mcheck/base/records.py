"""Data classes like the standard library's, created in a fifth of the time, and frozen ones pickled in two thirds.

Up to Python 3.12 ``dataclasses.dataclass`` compiles the methods of a class one by one, which was a third of the time
that ``mcheck`` takes to start. Here fields and methods are made when they are first looked up, and a method is compiled
when it has been called often: most classes have few instances in a small test. Pickling does not look up the fields
each time. An instance with many fields is created in a third of the time: while it is filled in, its class is an
unfrozen one of the same layout. Everything else (fields, slots, inheritance, ``replace``) is the standard library's.
"""

from __future__ import annotations

import dataclasses
import sys
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

__all__ = ["dataclass", "replace"]

_FIELD: Any = vars(dataclasses)["_FIELD"]
_ANNOTATED_LATE = sys.version_info >= (3, 14)

MANY = 6
"""The number of fields from which filling in an instance of an unfrozen class pays off."""
OFTEN = 40
"""The number of calls from which compiling a method pays off: that takes as long as to interpret it so often."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass, replace

    Field = dataclasses.Field[Any]
    Method = Callable[..., Any]
else:

    def dataclass(cls=None, *, frozen=False, slots=False, kw_only=False, **more):
        """``dataclasses.dataclass``, with a faster implementation for classes with slots."""
        if slots and more.keys() <= (set() if frozen else {"eq", "repr", "match_args"}):
            shape = _Shape(frozen, kw_only, **more)
            return lambda cls: _made(cls, shape)
        return dataclasses.dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, **more)

    def replace(instance, /, **changes):
        """``dataclasses.replace`` in a third of the time, for fields that all are parameters."""
        for name in _parameters(type(instance)):
            if name not in changes:
                changes[name] = getattr(instance, name)
        return type(instance)(**changes)


@cache
def _parameters(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a class that its constructor takes."""
    return tuple(f.name for f in dataclasses.fields(kind) if f.init)


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

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the class gets, unless it has them."""
        return (
            "__init__",
            *(["__eq__"] if self.eq else []),
            *(["__repr__"] if self.repr else []),
            *(["__hash__", "__getstate__", "__setstate__", *_GUARDS] if self.frozen else []),
        )


_GUARDS = ("__setattr__", "__delattr__")
"""The methods of a frozen class that stand above its own."""


def _made(cls: type[Any], shape: _Shape) -> type[Any]:
    """The class with slots for its fields, and what the functions of ``dataclasses`` want to find."""
    own = vars(cls)
    annotated = cls.__annotations__ if "__annotations__" in own or _ANNOTATED_LATE else {}
    kinds = {
        name: kind for name, kind in annotated.items() if not str(kind).startswith(("ClassVar", "typing.ClassVar"))
    }
    inherited: dict[str, Field] = {}
    taken: set[str] = set()
    for base in cls.__mro__[-2:0:-1]:
        inherited.update(getattr(base, "__dataclass_fields__", {}))
        taken.update(vars(base).get("__slots__", ()))
    fields = _Fields(
        inherited, {name: (kind, own.get(name, dataclasses.MISSING)) for name, kind in kinds.items()}, shape
    )
    scope = {name: value for name, value in own.items() if name not in kinds and name not in inherited}
    for name in ("__dict__", "__weakref__"):
        scope.pop(name, None)
    scope["__slots__"] = tuple(name for name in dict.fromkeys((*inherited, *kinds)) if name not in taken)
    scope["__dataclass_fields__"] = fields
    scope["__dataclass_params__"] = vars(_Like)["__dataclass_params__"]
    if shape.eq and not shape.frozen:
        scope.setdefault("__hash__", None)
    if shape.match_args and "__match_args__" not in scope:
        scope["__match_args__"] = () if shape.kw_only and not inherited else fields.positional()
    later = []
    for name in shape.methods:
        if own.get(name) is None or name in _GUARDS:  # __eq__ leaves None for __hash__
            scope[name] = method = _Later(name, shape)
            later.append(method)
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, scope)
    made.__qualname__ = cls.__qualname__
    for method in later:
        method.made = made
    return made


class _Fields:
    """The fields of a class, those of its bases first, made when they are first looked up."""

    __slots__ = ("inherited", "made", "own", "shape")

    def __init__(self, inherited: dict[str, Field], own: dict[str, tuple[Any, Any]], shape: _Shape) -> None:
        self.inherited, self.own, self.shape = inherited, own, shape
        self.made: dict[str, Field] | None = None

    def __get__(self, instance: object, owner: type[Any] | None = None) -> dict[str, Field]:
        if self.made is None:
            self.made = dict(self.inherited)
            for name, (kind, default) in self.own.items():
                field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
                field.name, field.type, field._field_type = name, kind, _FIELD  # noqa: SLF001 - as dataclasses itself does
                if field.kw_only is dataclasses.MISSING:
                    field.kw_only = self.shape.kw_only
                self.made[name] = field
        return self.made

    def positional(self) -> tuple[str, ...]:
        """The parameters that need not be named."""
        return tuple(f.name for f in self.__get__(None).values() if f.init and not f.kw_only)


class _Later:
    """A method that is interpreted at first, and compiled when it is called often, or looked up in the class.

    ``inspect`` of Python 3.13 binds it to the class itself, to see its parameters.
    """

    __slots__ = ("calls", "interpreted", "made", "name", "shape")
    made: type[Any]

    def __init__(self, name: str, shape: _Shape) -> None:
        self.name, self.shape = name, shape
        self.interpreted: Method | None = None
        self.calls = 0

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        if not (instance is None or isinstance(instance, type)) and self.name in _INTERPRETED and self.calls < OFTEN:
            self.calls += 1
            if self.interpreted is None:
                self.interpreted = _INTERPRETED[self.name](self, dataclasses.fields(self.made))
            return MethodType(self.interpreted, instance)
        return self.compile().__get__(instance, owner)

    def compile(self) -> Method:
        """The method itself, which takes the place of this one."""
        made, name = self.made, self.name
        if vars(made).get(name) is not self:  # meanwhile another call has compiled it
            return vars(made)[name]  # type: ignore[no-any-return]
        method = _MAKERS[name](made, dataclasses.fields(made), self.shape)
        method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
        setattr(made, name, method)
        return method


# --- methods as they are interpreted ---------------------------------------------------------------------------


def _interpret_init(later: _Later, fields: tuple[Field, ...]) -> Method:
    positional = tuple(f.name for f in fields if f.init and not f.kw_only)
    names = frozenset(f.name for f in fields if f.init)
    without_value = [f.name for f in fields if f.default is f.default_factory]  # neither: both are missing
    needed = names.intersection(without_value)
    filled: list[tuple[str, Any, Any]] = [
        (f.name, f.default, f.default_factory) for f in fields if f.name not in without_value or f.init
    ]
    put = object.__setattr__ if later.shape.frozen else setattr
    then = hasattr(later.made, "__post_init__")

    def method(self: Any, *args: object, **kwargs: object) -> None:
        values = {**dict(zip(positional, args, strict=False)), **kwargs}
        count = len(args) + len(kwargs)
        if len(args) > len(positional) or len(values) < count or not needed <= values.keys() <= names:
            later.compile()(self, *args, **kwargs)  # says what is wrong with the call
            return
        for name, default, make in filled:
            if name in values:
                put(self, name, values[name])
            else:
                put(self, name, make() if default is dataclasses.MISSING else default)
        if then:
            self.__post_init__()

    return method


def _interpret_eq(later: _Later, fields: tuple[Field, ...]) -> Method:
    del later
    names = [f.name for f in fields if f.compare]

    def method(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return [getattr(self, name) for name in names] == [getattr(other, name) for name in names]

    return method


def _interpret_hash(later: _Later, fields: tuple[Field, ...]) -> Method:
    del later
    names = _hashed(fields)

    def method(self: object) -> int:
        return hash(tuple(getattr(self, name) for name in names))

    return method


_INTERPRETED: dict[str, Callable[[_Later, tuple[Field, ...]], Method]] = {
    "__init__": _interpret_init,
    "__eq__": _interpret_eq,
    "__hash__": _interpret_hash,
}

# --- methods as they are compiled, which engines call millions of times ----------------------------------------


def _compile_init(made: type[Any], fields: tuple[Field, ...], *, frozen: bool) -> Method:
    scope: dict[str, Any] = {"_put": object.__setattr__, "_missing": dataclasses.MISSING}
    if frozen and len(fields) >= MANY:
        scope["_frozen"], scope["_open"] = made, _opened(made)
    return _executed("".join(_init(made, fields, scope, frozen=frozen)), scope)


def _compile_eq(fields: tuple[Field, ...]) -> Method:
    compared = [f.name for f in fields if f.compare]
    return _executed(
        "def __eq__(self, other):\n"
        " if other.__class__ is not self.__class__:\n  return NotImplemented\n"
        f" return {_tuple('self', compared)} == {_tuple('other', compared)}\n"
    )


def _compile_hash(fields: tuple[Field, ...]) -> Method:
    return _executed(f"def __hash__(self):\n return hash({_tuple('self', _hashed(fields))})\n")


def _executed(text: str, scope: dict[str, Any] | None = None) -> Method:
    """The function that a text defines."""
    scope = {} if scope is None else scope
    exec(text, scope)  # noqa: S102 - made of names of fields, which are identifiers
    method: Method = next(reversed(scope.values()))
    return method


def _hashed(fields: tuple[Field, ...]) -> list[str]:
    return [f.name for f in fields if (f.compare if f.hash is None else f.hash)]


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


# --- methods that need no compiling ----------------------------------------------------------------------------


def _repr(names: tuple[str, ...]) -> Callable[[object], str]:
    def method(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return recursive_repr()(method)


def _guard_set(made: type[Any], names: frozenset[str]) -> Method:
    """``__setattr__`` of a frozen class; a subclass may have further, mutable attributes."""

    def put(self: object, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    return put


def _guard_delete(made: type[Any], names: frozenset[str]) -> Method:
    """``__delattr__`` of a frozen class."""

    def remove(self: object, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return remove


def _get_state(names: tuple[str, ...]) -> Method:
    """``__getstate__``: pickles hold the values of all fields."""
    several = attrgetter(*names) if len(names) > 1 else None

    def getstate(self: object) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names) if several is None else several(self)

    return getstate


def _set_state(names: tuple[str, ...]) -> Method:
    def setstate(self: object, state: tuple[Any, ...]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return setstate


def _names(fields: tuple[Field, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields)


_MAKERS: dict[str, Callable[[type[Any], tuple[Field, ...], _Shape], Method]] = {
    "__init__": lambda made, fields, shape: _compile_init(made, fields, frozen=shape.frozen),
    "__eq__": lambda _, fields, __: _compile_eq(fields),
    "__hash__": lambda _, fields, __: _compile_hash(fields),
    "__repr__": lambda _, fields, __: _repr(tuple(f.name for f in fields if f.repr)),
    "__getstate__": lambda _, fields, __: _get_state(_names(fields)),
    "__setstate__": lambda _, fields, __: _set_state(_names(fields)),
    "__setattr__": lambda made, fields, _: _guard_set(made, frozenset(_names(fields))),
    "__delattr__": lambda made, fields, _: _guard_delete(made, frozenset(_names(fields))),
}
