"""TOML documents with error positions, which ``tomllib`` does not keep."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mcheck.base.errors import InputError, Span
from mcheck.base.files import read_text_file as text_of
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import suggest
from mcheck.isa.wording import join_alternatives

HEADER = re.compile(r"\s*\[+\s*([\w.\"-]+)\s*\]+")
SYNTAX = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")

MOST = 1 << 18
"""The maximum size of a document in bytes; the largest shipped alphabet has about three thousand."""

Row = tuple[str, int]
"""A table: its name and, if there are several, its number."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file with its text."""

    path: str
    text: str
    data: dict[str, Any]

    def error(self, message: str, row: Row = ("", 0), key: str = "", hint: str | None = None) -> InputError:
        """An error at a key of a table, or at its header if it has no such key."""
        return InputError(message, self._span(row, key), hint=hint)

    def refuse_unknown_keys(self, given: dict[str, Any], known: tuple[str, ...], row: Row = ("", 0)) -> None:
        """Raise ``InputError`` for an unknown key."""
        for key in given:
            if key not in known:
                where = f"[[{row[0]}]]" if row[0] else "an alphabet"
                hint = suggest(key, known) or f"the keys are {join_alternatives(known)}"
                raise self.error(f"{where} has no key {key}", row, key, hint)

    def _span(self, row: Row, key: str) -> Span:
        name, left = row
        here, found = not name, Span(self.path, 1, 1)
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := HEADER.match(line):
                if here and name:
                    break
                here = header[1] == name and left == 0
                left -= header[1] == name
                if here or (not name and header[1] == key):
                    found = Span(self.path, number, header.start(1) + 1, len(header[1]))
            elif here and key and (entry := re.match(rf"(\s*){re.escape(key)}\s*=\s*(.*?)\s*(?:#.*)?$", line)):
                return Span(self.path, number, entry.start(2) + 1, max(len(entry[2]), 1))
        return found


def read(path: Path) -> Document:
    """Read a document; raises ``OSError`` if it cannot be read, ``InputError`` if it is not valid TOML."""
    try:
        text = text_of(str(path), MOST)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start})") from None
    try:
        return Document(str(path), text, tomllib.loads(text))
    except RecursionError:
        raise InputError("the text is nested too deeply", Span(str(path), 1, 1)) from None
    except (OverflowError, MemoryError):  # a number or a date out of range
        raise InputError("a value is too large", Span(str(path), 1, 1)) from None
    except tomllib.TOMLDecodeError as error:
        said = SYNTAX.fullmatch(str(error))
        if said is None:
            lines = text.split("\n")
            raise InputError(str(error), Span(str(path), len(lines), len(lines[-1]) + 1)) from None
        raise InputError(said[1], Span(str(path), int(said[2]), int(said[3]))) from None
