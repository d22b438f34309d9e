"""Cache keys: a digest of everything that an answer depends on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
_READ = (".py", ".cat")
SIZE = 32
"""The size of a key, and of the digest of a text, in bytes."""


@cache
def version() -> bytes:
    """A digest of mcheck's own code; the version number stays the same while a checkout is edited."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(_code_files(_PACKAGE)):
        with open(path, "rb", buffering=0) as file:
            text = file.read()
        found.update(f"{path[len(_PACKAGE) :]}\0{len(text)}\0".encode())
        found.update(text)
    return found.digest()


def _code_files(folder: str) -> Iterator[str]:
    """The paths of the files with code in a folder and those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_READ):
                yield entry.path
            elif entry.name not in ("_data", "__pycache__") and entry.is_dir():
                yield from _code_files(entry.path)


def options_text(options: Mapping[str, object]) -> str:
    """Options as text."""
    return json.dumps(options, sort_keys=True, default=list)


def cache_key(head: str, parts: Iterable[bytes]) -> bytes:
    """The cache key of a question: its options ``head`` and the digests of the texts it is about."""
    found = hashlib.blake2b(version(), digest_size=SIZE)
    for part in (digest(head), *parts):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


def digest(text: str) -> bytes:
    """The digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()
