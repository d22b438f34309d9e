"""What an answer is kept under: a digest of everything that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_READ = (".py", ".cat")


@cache
def version() -> bytes:
    """A digest of mcheck's own code: in a checkout that is edited the number of the version stays."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in _PACKAGE.rglob("*") if p.suffix in _READ and "_data" not in p.parts):
        text = path.read_bytes()
        found.update(f"{path.relative_to(_PACKAGE)}\0{len(text)}\0".encode())
        found.update(text)
    return found.digest()


def key_of(options: Mapping[str, object], *texts: str) -> bytes:
    """The key of the answer to a question of this version, put with ``options`` about ``texts``."""
    head = json.dumps(options, sort_keys=True, default=list)
    found = hashlib.blake2b(version(), digest_size=32)
    for text in (head, *texts):
        data = text.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.digest()


def digest(text: str) -> bytes:
    """What a text is recognised by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
