"""Answers as bytes, and back: a pickle that holds the data classes of answers and nothing else.

Whoever can write to the store could put anything there, so reading makes nothing but those classes. Places in the
program's file are kept without its path, which is that of whoever asks.
"""

from __future__ import annotations

import io
import pickle
import sys
import zlib
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from mcheck.errors import Span

DATA = frozenset(
    {
        "mcheck.answers.result",
        "mcheck.check.case",
        "mcheck.errors",
        "mcheck.findings.finding",
        "mcheck.findings.trace",
        "mcheck.program.condition",
        "mcheck.reasons",
        "mcheck.report.site.content",
        "mcheck.report.site.listing",
        "mcheck.run.case",
        "mcheck.verdicts",
    }
)
"""The modules whose data classes and enumerations answers are made of."""


class Foreign(Exception):
    """Something that answers are not made of, or a place in another file."""


def pack(answer: object, path: str, *, elsewhere: bool = False) -> bytes:
    """``answer`` about the file at ``path`` as bytes; ``Foreign`` if it speaks of other files too, unless places
    ``elsewhere`` are what the file itself says.
    """
    out = io.BytesIO()
    _Packer(out, path, elsewhere=elsewhere).dump(answer)
    return zlib.compress(out.getvalue(), 1)


def unpack(data: bytes, path: str) -> Any:
    """What was packed, as about the file at ``path``; ``Foreign`` if these are not the bytes of an answer."""
    try:
        return _Unpacker(io.BytesIO(zlib.decompress(data)), path).load()
    except (pickle.UnpicklingError, zlib.error, EOFError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise Foreign(str(error)) from None


class _Packer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, path: str, *, elsewhere: bool) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._path = path
        self._elsewhere = elsewhere

    def persistent_id(self, obj: object) -> tuple[str | None, int, int, int] | None:
        if type(obj) is not Span:
            return None
        if obj.path != self._path and not self._elsewhere:
            raise Foreign(f"a place in {obj.path}")
        return None if obj.path == self._path else obj.path, obj.line, obj.column, obj.length


class _Unpacker(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, path: str) -> None:
        super().__init__(source)
        self._path = path

    def persistent_load(self, pid: Any) -> Span:
        path, line, column, length = pid
        return Span(self._path if path is None else path, line, column, length)

    def find_class(self, module: str, name: str) -> Any:
        if module in DATA:
            found = getattr(sys.modules.get(module) or import_module(module), name, None)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum)):
                return found
        raise Foreign(f"{module}.{name}")
