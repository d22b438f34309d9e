"""The file of kept answers: SQLite in WAL mode, shared by any number of processes of one machine.

An entry is bytes under a key. Each is sealed by a digest of both, and the file carries the number of this application
and of its layout. A file that is damaged or somebody else's is an error; an entry that is damaged is none. Nothing is
ever changed, only added and removed. Where the surroundings fail (a full disk, a lock that lasts), whoever asks goes on
without the store, once that has been said.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from mcheck.base.errors import InputError

FILE = "answers.sqlite"
APPLICATION = 0x6D63686B
"""SQLite's ``application_id``: the letters ``mchk``."""
LAYOUT = 1
PATIENCE = 60.0
"""Seconds that a process waits while others write, where nothing limits its time."""
SHARE = 4
"""The part of a limit of time that it may wait."""
DAY = 86_400
MOST = 32 << 20
"""Bytes of an entry, and of anything else that the file may make SQLite hold."""
_SCHEMA = """
CREATE TABLE answers(
    key BLOB PRIMARY KEY, version BLOB NOT NULL, day INTEGER NOT NULL, answer BLOB NOT NULL, seal BLOB NOT NULL
)
"""
_SOUND = "typeof(key) = 'blob' AND typeof(answer) = 'blob' AND typeof(seal) = 'blob' AND typeof(day) = 'integer'"
_SURROUNDINGS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
    }
)
"""What SQLite says of a disk, a lock or rights, and not of the file's contents."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
Say = Callable[[str], None]


class Away(Exception):
    """The surroundings keep the store from being used, for the reason that is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a store holds: ``own`` of ``answers`` are this version's; ``days`` since the longest unused was used."""

    path: str
    answers: int
    own: int
    bytes: int
    days: int


class Store:
    """The answers in a folder; ``version`` is that of whoever keeps and finds them. Raises ``Away`` if the surroundings
    keep it from being used at all; where they fail later, ``say`` hears of it, once, and nothing more is kept or found.

    ``patience``: the seconds that it may wait for others.
    """

    def __init__(self, folder: str, version: bytes, *, patience: float = PATIENCE, say: Say = lambda _: None) -> None:
        self.path = os.path.join(folder, FILE)
        self._version = version
        self._say = say
        self._writes = self._reads = True
        with self._explained():
            os.makedirs(folder, exist_ok=True)
            if not os.path.exists(self.path):
                _create(folder, self.path)
            if not os.path.isfile(self.path):
                raise self.unusable("it is no file")
            self._file = sqlite3.connect(self.path, timeout=patience, isolation_level=None)
        try:
            with self._explained():
                _bounded(self._file)
                self._check()
                self._file.execute("PRAGMA synchronous = NORMAL")  # a crash of the system may cost the last answers
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

    def __contains__(self, key: bytes) -> bool:
        return self._found(key) is not None

    def get(self, key: bytes) -> bytes | None:
        """What is kept under ``key``."""
        found = self._found(key)
        if found is None:
            return None
        answer, day = found
        if day != _today() and self._writes:
            try:  # only what prune goes by; a store that cannot be written is read
                self._file.execute("UPDATE answers SET day = ? WHERE key = ?", (_today(), key))
            except sqlite3.OperationalError:
                self._writes = False
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Keeps ``answer`` under ``key``; the first answer stays, unless it is damaged."""
        if not self._writes or len(answer) > MOST:
            return
        row = (key, self._version, _today(), answer, _seal(key, answer))
        try:
            with self._explained():
                added = self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row).rowcount
                if not added and self._found(key) is None:
                    self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)
        except Away as away:
            self._writes = False
            self._say(f"nothing more is kept in the cache {self.path}: {away}")

    def remove(self, key: bytes) -> None:
        """Removes an answer that turned out to be none."""
        if self._writes:
            with suppress(Away), self._explained():
                self._file.execute("DELETE FROM answers WHERE key = ?", (key,))

    def _found(self, key: bytes) -> tuple[bytes, int] | None:
        """The answer under ``key`` and the day when it was last used, if there is a sound one."""
        if not self._reads:
            return None
        asked = f"SELECT answer, seal, day FROM answers WHERE key = ? AND {_SOUND} AND length(answer) <= {MOST}"  # noqa: S608 - no text from outside
        try:
            with self._explained():
                row = self._file.execute(asked, (key,)).fetchone()
        except Away as away:
            self._reads = self._writes = False
            self._say(f"going on without the cache {self.path}: {away}")
            return None
        return None if row is None or row[1] != _seal(key, row[0]) else (row[0], row[2])

    def contents(self) -> Contents:
        """What there is."""
        with self._explained():
            answers, own, oldest, size = self._file.execute(
                "SELECT count(*), coalesce(sum(version = ?), 0), min(CAST(day AS INTEGER)),"
                " coalesce(sum(length(answer)), 0) FROM answers",
                (self._version,),
            ).fetchone()
        days = 0 if oldest is None else _today() - oldest
        return Contents(path=self.path, answers=answers, own=own, bytes=size, days=days)

    def own(self) -> Iterator[tuple[bytes, bytes]]:
        """The sound answers of this version behind their keys."""
        with self._explained():
            asked = f"SELECT key FROM answers WHERE version = ? AND {_SOUND}"  # noqa: S608 - no text from outside
            keys = [key for (key,) in self._file.execute(asked, (self._version,))]
        for key in keys:
            found = self._found(key)
            if found is not None:
                yield key, found[0]

    def damaged(self) -> int:
        """Reads everything; how many entries are damaged. ``InputError`` if the file is."""
        with self._explained():
            (said,) = self._file.execute("PRAGMA integrity_check(1)").fetchone()
            rows = self._file.execute("SELECT count(*) FROM answers").fetchone()[0]
            asked = f"SELECT key FROM answers WHERE {_SOUND}"  # noqa: S608 - no text from outside
            keys = [key for (key,) in self._file.execute(asked)]
        if said != "ok":
            raise self.unusable(said)
        return int(rows) - sum(self._found(key) is not None for key in keys)

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
        # A view or a trigger of somebody else would be run by what is asked here.
        there = self._file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 2").fetchall()
        if there != [(_SCHEMA.strip(),)]:
            raise self.unusable("it has other tables than a store of answers of mcheck")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _SURROUNDINGS:
                raise Away(str(error)) from None
            raise self.unusable(str(error)) from None
        except (UnicodeError, OverflowError, TypeError):  # what SQLite is made to say by a file that is damaged
            raise self.unusable("it is damaged") from None
        except OSError as error:
            if error.errno in _FULL:
                raise Away(error.strerror or str(error)) from None
            raise InputError(f"cannot use the cache {self.path}: {error.strerror or error}") from None

    def unusable(self, why: str) -> InputError:
        """The error that says why the store is of no use, and the ways out."""
        hint = "remove the file, name another folder with --cache, or go without"
        return InputError(f"cannot use the cache {self.path}: {why}", hint=hint)


def patience(timeout: float | None) -> float:
    """The seconds that a command with this limit of time may wait for others at its store."""
    return PATIENCE if timeout is None else min(PATIENCE, timeout / SHARE)


@contextmanager
def open_store(
    folder: str | None, *, timeout: float | None = None, say: Say = lambda _: None
) -> Iterator[Store | None]:
    """The store in ``folder``, made where there is none, for this version of mcheck; nothing without a folder, or, once
    ``say`` has heard of it, where the surroundings keep it from being used.
    """
    if folder is None:
        yield None
        return
    from mcheck.checking.cache.keys import version

    try:
        store = Store(folder, version(), patience=patience(timeout), say=say)
    except Away as away:
        say(f"going on without the cache {os.path.join(folder, FILE)}: {away}")
        yield None
        return
    with closing(store):
        yield store


def _bounded(file: sqlite3.Connection) -> None:
    """Whatever is in the file: no more memory than an entry takes, no functions, and text that is no text as it is."""
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST + 4096)
    file.execute("PRAGMA trusted_schema = OFF")
    file.text_factory = lambda data: data.decode("utf-8", "replace")


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
