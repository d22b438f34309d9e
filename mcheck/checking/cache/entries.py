"""Cache entries: an answer with the inputs of its key, which are checked when it is read.

A key is a digest, which does not say which texts the answer is about; an answer copied from another key would pass for
this one's. So an entry records its texts, and the answer is checked against them.
"""

from __future__ import annotations

import json
from typing import Protocol

from mcheck.base.records import dataclass
from mcheck.checking.cache.keys import SIZE, cache_key, digest
from mcheck.checking.cache.packing import InvalidAnswer

_LENGTH = 4
SOURCE, MODEL = 0, 2
"""Indices of the program's text and of the model's digest among the texts of a key."""


class About(Protocol):
    """An answer that names its texts: the program's source, and the digest of the model."""

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class KeyInputs:
    """The inputs of a key: options as text, and the digests of texts."""

    head: str
    parts: tuple[bytes, ...]

    def key(self) -> bytes:
        """The key."""
        return cache_key(self.head, self.parts)

    def fits(self, answer: About) -> bool:
        """Whether an answer is about these texts."""
        return digest(answer.source) == self.parts[SOURCE] and digest(answer.digest) == self.parts[MODEL]

    @property
    def command(self) -> str:
        """The command whose answer is stored under the key; empty if it is not recorded."""
        try:
            options = json.loads(self.head)
        except (ValueError, RecursionError):
            return ""
        found = options.get("command") if isinstance(options, dict) else None
        return found if isinstance(found, str) else ""


def pack_entry(made: KeyInputs, answer: bytes) -> bytes:
    """An entry as bytes."""
    head = made.head.encode("utf-8", "surrogatepass")
    lengths = len(head).to_bytes(_LENGTH, "big") + len(made.parts).to_bytes(_LENGTH, "big")
    return b"".join((lengths, head, *made.parts, answer))


def unpack_entry(data: bytes) -> tuple[KeyInputs, bytes]:
    """Splits an entry into the inputs of its key and the answer; ``InvalidAnswer`` if the bytes are not an entry."""
    length = int.from_bytes(data[:_LENGTH], "big")
    count = int.from_bytes(data[_LENGTH : 2 * _LENGTH], "big")
    start = 2 * _LENGTH + length
    end = start + count * SIZE
    if count <= MODEL or end > len(data):
        raise InvalidAnswer("an entry is truncated")
    try:
        head = data[2 * _LENGTH : start].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise InvalidAnswer(str(error)) from None
    return KeyInputs(head, tuple(data[at : at + SIZE] for at in range(start, end, SIZE))), data[end:]
