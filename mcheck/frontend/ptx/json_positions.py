"""JSON whose values have source locations, so that an error in a launch is shown where it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.ptx.cursor import COMMENTS
from mcheck.frontend.ptx.problems import problem

_DECODER = json.JSONDecoder(strict=False)
_BLANKS = " \t\n\r"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document. ``where`` is its JSON pointer, or the option that gave it."""

    value: Any
    where: str
    source: Source | None = None
    keys: tuple[str | int, ...] = ()

    @property
    def span(self) -> Span | None:
        """The location of the value, if it comes from a text."""
        if self.source is None:
            return None
        start = _value_offset(self.source.clean, self.keys)
        end = _DECODER.raw_decode(self.source.clean, start)[1]
        newline = self.source.clean.find("\n", start, end)
        return self.source.span(start, max(1, (end if newline < 0 else newline) - start))

    @property
    def key_span(self) -> Span | None:
        """The location of the value's key; for an index, that of the value."""
        if self.source is None or not self.keys or isinstance(self.keys[-1], int):
            return self.span
        text, found = self.source.clean, _value_offset(self.source.clean, self.keys[:-1])
        start = _key_offset(text, found, self.keys[-1])
        return self.source.span(start, _DECODER.raw_decode(text, start)[1] - start)

    def child(self, key: str | int) -> Node:
        """The value under a key or at an index."""
        return Node(self.value[key], f"{self.where}/{key}", self.source, (*self.keys, key))

    def items(self) -> Iterator[tuple[str, Node]]:
        """The members of an object."""
        for key in self.value:
            yield key, self.child(key)

    def fail(self, code: str, *, expected: str | None = None, hint: str | None = None, **fields: object) -> NoReturn:
        """Raises the error ``code`` at this value."""
        self._fail(code, self.span, expected, hint, fields)

    def fail_at_key(
        self, code: str, *, expected: str | None = None, hint: str | None = None, **fields: object
    ) -> NoReturn:
        """Raises the error ``code`` at the key, where that is wrong whatever its value."""
        self._fail(code, self.key_span, expected, hint, fields)

    def _fail(
        self, code: str, span: Span | None, expected: str | None, hint: str | None, fields: dict[str, object]
    ) -> NoReturn:
        where = self.where or "the document"
        raise problem(code, span, expected=expected, hint=hint, where=where, **fields)


def parse_document(text: str, path: str) -> Node:
    """Parse the JSON document ``text`` (comments are allowed); raises ``InputError``."""
    source = Source(text, path, COMMENTS)
    twice: list[str] = []

    def pairs(found: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            names = [name for name, _ in found]
            twice.append(next(name for name in names if names.count(name) > 1))
        return made

    try:
        value = json.loads(source.clean, object_pairs_hook=pairs, parse_constant=_reject_constant, strict=False)
    except json.JSONDecodeError as error:
        raise problem("PTX101", Span(path, error.lineno, max(error.colno, 1)), reason=_describe_error(error)) from None
    except RecursionError:
        raise problem("PTX101", Span(path, 1, 1), reason="it is nested too deeply") from None
    except ValueError as error:
        raise problem("PTX101", Span(path, 1, 1), reason=str(error)) from None
    if twice:
        raise problem("PTX102", _repeated_key(source), name=twice[0])
    return Node(value, "", source)


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _describe_error(error: json.JSONDecodeError) -> str:
    return error.msg[0].lower() + error.msg[1:]


def _value_offset(text: str, keys: tuple[str | int, ...]) -> int:
    """The offset of the value at the path ``keys``."""
    at = _skip(text, 0)
    for key in keys:
        at = _member_offset(text, at, key)
    return at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _repeated_key(source: Source) -> Span | None:
    """The first key that its object already has."""
    text, known = source.clean, list[set[str]]()
    for token in _TOKEN.finditer(text):
        match token.group()[0]:
            case "{" | "[":
                known.append(set())
            case "}" | "]":
                known.pop()
            case _ if text.startswith(":", _skip(text, token.end())):
                name = _DECODER.raw_decode(token.group())[0]
                if name in known[-1]:
                    return source.span(token.start(), len(token.group()))
                known[-1].add(name)
    return None


def _member_offset(text: str, at: int, key: str | int) -> int:
    """The offset of the member ``key`` of the object or list at ``at``."""
    if isinstance(key, str):
        at = _DECODER.raw_decode(text, _key_offset(text, at, key))[1]
        return _skip(text, _skip(text, at) + 1)
    at = _skip(text, at + 1)
    for _ in range(key):
        at = _skip(text, _skip(text, _DECODER.raw_decode(text, at)[1]) + 1)
    return at


def _key_offset(text: str, at: int, key: str) -> int:
    """The offset of the key ``key`` of the object at ``at``."""
    at = _skip(text, at + 1)
    while True:
        name, end = _DECODER.raw_decode(text, at)
        if name == key:
            return at
        value = _skip(text, _skip(text, end) + 1)
        at = _skip(text, _skip(text, _DECODER.raw_decode(text, value)[1]) + 1)
