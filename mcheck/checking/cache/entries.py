"""What is kept under a key: of what the key was made, and the answer. The one has to fit the other.

A key is a digest, so that an answer under it says nothing of the texts that it is about; an answer that somebody
copied from another key would be taken for this one's. So an entry says of which texts it is, and the answer is held
against that.
"""

from __future__ import annotations

import json
from typing import Protocol

from mcheck.base.records import dataclass
from mcheck.checking.cache.keys import SIZE, digest, key_of
from mcheck.checking.cache.packing import Foreign

_LENGTH = 4
SOURCE, MODEL = 0, 2
"""Which of the texts of a key are the program's and (its digest) the model's."""


class About(Protocol):
    """What is held against a key: the program's text, and the digest of the model's."""

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Made:
    """Of what a key is made: options as a text, and the digests of texts."""

    head: str
    parts: tuple[bytes, ...]

    def key(self) -> bytes:
        """The key."""
        return key_of(self.head, self.parts)

    def fits(self, answer: About) -> bool:
        """Whether an answer is about these texts."""
        return digest(answer.source) == self.parts[SOURCE] and digest(answer.digest) == self.parts[MODEL]

    @property
    def command(self) -> str:
        """The command whose answer stands under the key; empty if nothing says so."""
        try:
            options = json.loads(self.head)
        except (ValueError, RecursionError):
            return ""
        found = options.get("command") if isinstance(options, dict) else None
        return found if isinstance(found, str) else ""


def entry(made: Made, answer: bytes) -> bytes:
    """The bytes of an entry."""
    head = made.head.encode("utf-8", "surrogatepass")
    lengths = len(head).to_bytes(_LENGTH, "big") + len(made.parts).to_bytes(_LENGTH, "big")
    return b"".join((lengths, head, *made.parts, answer))


def parted(data: bytes) -> tuple[Made, bytes]:
    """What a key was made of, and the answer; ``Foreign`` if these are not the bytes of an entry."""
    length = int.from_bytes(data[:_LENGTH], "big")
    count = int.from_bytes(data[_LENGTH : 2 * _LENGTH], "big")
    start = 2 * _LENGTH + length
    end = start + count * SIZE
    if count <= MODEL or end > len(data):
        raise Foreign("an entry is cut off")
    try:
        head = data[2 * _LENGTH : start].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Foreign(str(error)) from None
    return Made(head, tuple(data[at : at + SIZE] for at in range(start, end, SIZE))), data[end:]
