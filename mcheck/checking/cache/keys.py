"""Cache keys: a digest of everything that an answer depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_READ = (".py", ".cat")
SIZE = 32
"""The size of a key, and of the digest of a text, in bytes."""


@cache
def version() -> bytes:
    """A digest of mcheck's own code; the version number stays the same while a checkout is edited."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in _PACKAGE.rglob("*") if p.suffix in _READ and "_data" not in p.parts):
        text = path.read_bytes()
        found.update(f"{path.relative_to(_PACKAGE)}\0{len(text)}\0".encode())
        found.update(text)
    return found.digest()


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
