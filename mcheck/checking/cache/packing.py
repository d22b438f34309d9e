"""Serialisation of answers: JSON by the declared types of their data classes, compressed.

Anybody who can write to the cache could put anything there. So reading creates nothing but values that the fields of an
answer may have, of a bounded size, and rejects everything else. Locations in the program's file are stored without its
path, and get that of the file in question.
"""

from __future__ import annotations

import json
import types
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.findings.finding import Access, CompiledLine

MAX_SIZE = 8 << 20
"""The maximum size of an answer's JSON in bytes; a longer one is not stored."""
MAX_LISTS = 1_000_000
"""The maximum number of lists in it: each takes many times the memory of its brackets."""
LEVEL = 1
"""The compression level: time matters more than size."""
_OTHER_FILES = frozenset({(Access, "source"), (CompiledLine, "source")})
"""The fields whose locations may be in other files: the sources that a module says it was compiled from."""

T = TypeVar("T")


class InvalidAnswer(Exception):
    """Data that does not belong to an answer, or a location in another file."""


@dataclass(frozen=True, slots=True)
class _File:
    """The file that an answer is about, and whether locations in other files are allowed."""

    path: str
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """The codec of a type: both functions raise ``InvalidAnswer``.

    ``takes``: the types of JSON that its values become. ``cls``: its data class, if it has one.
    """

    write: Callable[[Any, _File], Any]
    read: Callable[[Any, _File], Any]
    takes: frozenset[type]
    cls: type | None = None


def pack(answer: object, path: str, *, elsewhere: bool = False) -> bytes:
    """``answer`` about the file at ``path`` as bytes.

    ``InvalidAnswer`` if it is too long, or has locations in other files that the file itself does not name
    (``elsewhere``).
    """
    kind: Any = type(answer)
    written = _form(kind).write(answer, _File(path, elsewhere))
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_SIZE or data.count(b"[") > MAX_LISTS:
        raise InvalidAnswer("it is too long")
    return zlib.compress(data, LEVEL)


def unpack(kind: type[T], data: bytes, path: str, *, elsewhere: bool = False) -> T:
    """Restores a packed ``kind`` for the file at ``path``; ``InvalidAnswer`` if the bytes are invalid."""
    try:
        asked: Any = kind
        found: T = _form(asked).read(_json(data), _File(path, elsewhere))
    except (ValueError, TypeError, LookupError, RecursionError, zlib.error) as error:
        raise InvalidAnswer(str(error)) from None
    return found


def _json(data: bytes) -> Any:
    """Parses the JSON, after checking its size."""
    unpacked = zlib.decompressobj()
    text = unpacked.decompress(data, MAX_SIZE)
    if unpacked.unconsumed_tail or not unpacked.eof or unpacked.unused_data or text.count(b"[") > MAX_LISTS:
        raise InvalidAnswer("it is too long, or truncated")
    return json.loads(text.decode("utf-8", "surrogatepass"), object_pairs_hook=_refuse, parse_constant=_refuse)


def _refuse(found: object) -> Any:
    raise InvalidAnswer(f"{type(found).__name__} in an answer")


# --- forms by types ---------------------------------------------------------------------------------------------


@cache
def _form(hint: Any) -> _Form:
    """The codec of a type, as a field declares it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return _literal((None,))
    if hint in (str, int, bool, float):
        return _plain(hint)
    if hint is Span:
        return _HERE
    if origin is Literal:
        return _literal(inner)
    if origin is tuple:
        return _several(inner[0]) if len(inner) == 2 and inner[1] is Ellipsis else _tuple(inner)
    if origin in (types.UnionType, Union):
        return _one_of(tuple(_form(each) for each in inner))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enumeration(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    return _nothing(hint)


def _plain(kind: type) -> _Form:
    other = int if kind is float else kind

    def same(value: Any, _: _File) -> Any:
        if type(value) is not kind and type(value) is not other:
            raise InvalidAnswer(f"{type(value).__name__} in place of {kind.__name__}")
        return value

    return _Form(same, same, frozenset({kind, other}))


def _literal(values: tuple[Any, ...]) -> _Form:
    def same(value: Any, _: _File) -> Any:
        if not any(type(value) is type(known) and value == known for known in values):
            raise InvalidAnswer(f"{value!r:.40} is none of {values}")
        return value

    return _Form(same, same, frozenset(map(type, values)))


def _several(inner: Any) -> _Form:
    """The codec of a tuple of any length."""
    form = cache(lambda: _form(inner))  # when it is used: a class may hold others of its own kind

    def write(value: Any, file: _File) -> Any:
        one = form().write
        return [one(each, file) for each in _a(tuple, value)]

    def read(value: Any, file: _File) -> Any:
        if not _a(list, value):
            return ()
        one = form().read
        return tuple([one(each, file) for each in value])

    return _Form(write, read, frozenset({list}))


def _tuple(inner: tuple[Any, ...]) -> _Form:
    forms = cache(lambda: [_form(hint) for hint in inner])

    def write(value: Any, file: _File) -> Any:
        return [form.write(each, file) for form, each in zip(forms(), _a(tuple, value), strict=True)]

    def read(value: Any, file: _File) -> Any:
        return tuple([form.read(each, file) for form, each in zip(forms(), _a(list, value), strict=True)])

    return _Form(write, read, frozenset({list}))


def _one_of(forms: tuple[_Form, ...]) -> _Form:
    """The codec of a union; members of several data classes are tagged with their class names."""
    classes = {form.cls.__name__: form for form in forms if form.cls is not None}
    named = len(classes) > 1
    plain = [form for form in forms if form.cls is None or not named]
    by_type = {kind: [form for form in plain if kind in form.takes] for form in plain for kind in form.takes}

    def write(value: Any, file: _File) -> Any:
        name = type(value).__name__
        if named and name in classes and type(value) is classes[name].cls:
            return [name, classes[name].write(value, file)]
        return _first(plain, "write", value, file)

    def read(value: Any, file: _File) -> Any:
        if named and type(value) is list:
            name, content = value
            return classes[name].read(content, file)
        fitting = by_type.get(type(value), ())
        return fitting[0].read(value, file) if len(fitting) == 1 else _first(fitting, "read", value, file)

    return _Form(write, read, frozenset().union(*(form.takes for form in forms)))


def _first(forms: Sequence[_Form], way: str, value: Any, file: _File) -> Any:
    """Converts by the first codec that accepts the value."""
    why: InvalidAnswer = InvalidAnswer(f"{type(value).__name__} is none of a union")
    for form in forms:
        try:
            return getattr(form, way)(value, file)
        except InvalidAnswer as error:
            why = error
    raise why


def _enumeration(cls: type[Enum]) -> _Form:
    def write(value: Any, _: _File) -> Any:
        return _a(cls, value).name

    def read(value: Any, _: _File) -> Any:
        return cls[_a(str, value)]

    return _Form(write, read, frozenset({str}))


def _record(cls: type[Any]) -> _Form:
    """The codec of a data class: the values of its fields, in order."""

    @cache
    def parts() -> list[tuple[str, _Form]]:
        hints = get_type_hints(cls)
        return [(f.name, _ELSEWHERE if (cls, f.name) in _OTHER_FILES else _form(hints[f.name])) for f in fields(cls)]

    def write(value: Any, file: _File) -> Any:
        _a(cls, value)
        return [form.write(getattr(value, name), file) for name, form in parts()]

    def read(value: Any, file: _File) -> Any:
        pairs = zip(parts(), _a(list, value), strict=True)
        return cls(**{name: form.read(each, file) for (name, form), each in pairs})

    return _Form(write, read, frozenset({list}), cls)


def _nothing(hint: Any) -> _Form:
    """The codec of types that no cached answer has: exceptions."""

    def refuse(_: Any, __: _File) -> Any:
        raise InvalidAnswer(f"no answer that is kept has a {hint}")

    return _Form(refuse, refuse, frozenset())


def _a(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise InvalidAnswer(f"{type(value).__name__} in place of {kind.__name__}")
    return value


# --- places -----------------------------------------------------------------------------------------------------


def _write_place(span: Any, file: _File) -> Any:
    _a(Span, span)
    if span.path != file.path:
        raise InvalidAnswer(f"a place in {span.path}")
    return [span.line, span.column, span.length]


def _read_place(value: Any, file: _File) -> Any:
    line, column, length = (_a(int, number) for number in _a(list, value))
    return Span(file.path, line, column, length)


def _write_elsewhere(spans: Any, file: _File) -> Any:
    if spans and not file.elsewhere:
        raise InvalidAnswer(f"a place in {spans[0].path}")
    return [[span.path, span.line, span.column, span.length] for span in _a(tuple, spans)]


def _read_elsewhere(value: Any, file: _File) -> Any:
    if value and not file.elsewhere:
        raise InvalidAnswer("a place in another file")
    return tuple(Span(_a(str, path), *(_a(int, number) for number in rest)) for path, *rest in _a(list, value))


_HERE = _Form(_write_place, _read_place, frozenset({list}), Span)
_ELSEWHERE = _Form(_write_elsewhere, _read_elsewhere, frozenset({list}))
