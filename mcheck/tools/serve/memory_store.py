"""Answers in memory, by the digest of everything that they depend on (``mcheck.checking.cache.keys``)."""

from __future__ import annotations

from collections.abc import Mapping

MOST_BYTES = 64 << 20
"""The size of all answers together; the oldest go first."""


class MemoryStore:
    """A store of answers. ``added`` are those that were put since it was made; ``hits`` counts those that were found.

    A process that answers one request works on a fork of the store, and hands back what it ``added``.
    """

    def __init__(self) -> None:
        self._answers: dict[bytes, bytes] = {}
        self._bytes = 0
        self.added: dict[bytes, bytes] = {}
        self.hits = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._answers

    def get(self, key: bytes) -> bytes | None:
        """The answer under ``key``, if there is one."""
        found = self._answers.get(key)
        self.hits += found is not None
        return found

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer."""
        self.remove(key)
        self._answers[key] = self.added[key] = answer
        self._bytes += len(answer)
        while self._bytes > MOST_BYTES:
            self.remove(next(iter(self._answers)))

    def remove(self, key: bytes) -> None:
        """Forget an answer."""
        self.added.pop(key, None)
        self._bytes -= len(self._answers.pop(key, b""))

    def update(self, answers: Mapping[bytes, bytes]) -> None:
        """Keep answers that a fork has found."""
        for key, answer in answers.items():
            self.put(key, answer)
        self.added.clear()
