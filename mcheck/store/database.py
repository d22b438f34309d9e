"""The file of kept answers: SQLite in WAL mode, shared by any number of processes of one machine.

An entry is bytes under a key. Each is sealed by a digest of both, and the file carries the number of this application
and of its layout: what is damaged or somebody else's is an error, never an answer. Nothing is ever changed, only added
and removed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from mcheck.errors import InputError

FILE = "answers.sqlite"
APPLICATION = 0x6D63686B
"""SQLite's ``application_id``: the letters ``mchk``."""
LAYOUT = 1
PATIENCE = 60.0
"""Seconds that a process waits while others write."""
DAY = 86_400
_SCHEMA = """
CREATE TABLE answers(
    key BLOB PRIMARY KEY, version BLOB NOT NULL, day INTEGER NOT NULL, answer BLOB NOT NULL, seal BLOB NOT NULL
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a store holds: ``own`` of ``answers`` are this version's; ``days`` since the longest unused was used."""

    path: str
    answers: int
    own: int
    bytes: int
    days: int


class Store:
    """The answers in a folder; ``version`` is that of whoever keeps and finds them."""

    def __init__(self, folder: str, version: bytes) -> None:
        self.path = os.path.join(folder, FILE)
        self._version = version
        with self._explained():
            os.makedirs(folder, exist_ok=True)
            if not os.path.exists(self.path):
                _create(folder, self.path)
            self._file = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            with self._explained():
                self._check()
                self._file.execute("PRAGMA synchronous = NORMAL")  # a crash of the system may cost the last answers
        except InputError:
            self._file.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

    def __contains__(self, key: bytes) -> bool:
        with self._explained():
            found = self._file.execute("SELECT 1 FROM answers WHERE key = ?", (key,)).fetchone()
        return found is not None

    def get(self, key: bytes) -> bytes | None:
        """What is kept under ``key``."""
        with self._explained():
            row = self._file.execute("SELECT answer, seal, day FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        answer, seal, day = row
        if not isinstance(answer, bytes) or seal != _seal(key, answer):
            raise self.unusable("an answer in it is damaged")
        if day != _today():
            with suppress(sqlite3.OperationalError):  # only what prune goes by; a store that cannot be written is read
                self._file.execute("UPDATE answers SET day = ? WHERE key = ?", (_today(), key))
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Keeps ``answer`` under ``key``; the first answer stays."""
        row = (key, self._version, _today(), answer, _seal(key, answer))
        with self._explained():
            self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    def contents(self) -> Contents:
        """What there is."""
        with self._explained():
            answers, own, oldest, size = self._file.execute(
                "SELECT count(*), coalesce(sum(version = ?), 0), min(day), coalesce(sum(length(answer)), 0)"
                " FROM answers",
                (self._version,),
            ).fetchone()
        days = 0 if oldest is None else _today() - oldest
        return Contents(path=self.path, answers=answers, own=own, bytes=size, days=days)

    def check(self) -> None:
        """Reads everything; ``InputError`` if something is damaged."""
        with self._explained():
            (said,) = self._file.execute("PRAGMA integrity_check(1)").fetchone()
            keys = [key for (key,) in self._file.execute("SELECT key FROM answers")]
        if said != "ok":
            raise self.unusable(said)
        for key in keys:
            self.get(key)

    def prune(self, *, unused: int | None = None, others: bool = False) -> int:
        """Removes what nobody used for ``unused`` days, and ``others``' versions' answers; how many went."""
        with self._explained():
            gone = 0
            if unused is not None:
                gone += self._file.execute("DELETE FROM answers WHERE day <= ?", (_today() - unused,)).rowcount
            if others:
                gone += self._file.execute("DELETE FROM answers WHERE version != ?", (self._version,)).rowcount
            if gone:
                with suppress(sqlite3.OperationalError):  # others are at work: the room is used again by and by
                    self._file.execute("VACUUM")
        return gone

    def _check(self) -> None:
        (application,) = self._file.execute("PRAGMA application_id").fetchone()
        (layout,) = self._file.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise self.unusable("it is no store of answers of mcheck")
        if layout != LAYOUT:
            raise self.unusable(f"its layout is {layout}, and this version of mcheck knows {LAYOUT}")
        self._file.execute("SELECT key, version, day, answer, seal FROM answers LIMIT 0")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self.unusable(str(error)) from None
        except OSError as error:
            raise InputError(f"cannot use the cache {self.path}: {error.strerror or error}") from None

    def unusable(self, why: str) -> InputError:
        """The error that says why the store is of no use, and the ways out."""
        hint = "remove the file, name another folder with --cache, or go without"
        return InputError(f"cannot use the cache {self.path}: {why}", hint=hint)


@contextmanager
def opened(folder: str | None) -> Iterator[Store | None]:
    """The store in ``folder``, made where there is none, for this version of mcheck; nothing without a folder."""
    if folder is None:
        yield None
        return
    from mcheck.store.keys import version

    with closing(Store(folder, version())) as store:
        yield store


def _create(folder: str, path: str) -> None:
    """An empty store, whole from the moment that it is there: many processes may want it at once."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{FILE}.", dir=folder)
    os.close(descriptor)
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {LAYOUT}")
            file.execute(_SCHEMA)
        os.chmod(draft, 0o666 & ~_umask())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _seal(key: bytes, answer: bytes) -> bytes:
    return hashlib.blake2b(answer, key=key[:64], digest_size=16).digest()


def _today() -> int:
    return int(time.time() // DAY)
