"""The cache file: SQLite in WAL mode, shared by any number of processes of one machine.

An entry is bytes under a key, sealed by a digest of both. The file carries the number of this application and of its
layout. A damaged file, or one of another application, is an error; a damaged entry counts as missing. Entries are never
changed, only added and removed. If the environment fails (a full disk, a lasting lock), callers go on without the cache
after one warning.
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

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass

FILE = "answers.sqlite"
APPLICATION = 0x6D63686B
"""SQLite's ``application_id``: the letters ``mchk``."""
LAYOUT = 1
LOCK_TIMEOUT = 60.0
"""Seconds to wait for other writers if there is no time limit."""
SHARE = 4
"""The divisor of a time limit that gives the seconds to wait."""
DAY = 86_400
MAX_ENTRY = 32 << 20
"""The maximum size of an entry in bytes, and of anything else that the file may make SQLite hold."""
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
"""SQLite's error codes for a disk, a lock or permissions, not for the file's contents."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
Say = Callable[[str], None]


class Unavailable(Exception):
    """The environment prevents the use of the cache, for the given reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Statistics of a cache: ``own`` of its ``answers`` are of this version; ``days`` since the least recent use."""

    path: str
    answers: int
    own: int
    bytes: int
    days: int


class Store:
    """The cached answers in a folder, for one ``version`` of mcheck.

    Raises ``Unavailable`` if the environment prevents its use at all; if it fails later, ``say`` gets one message, and
    nothing more is stored or found. ``lock_timeout``: the seconds to wait for other processes.
    """

    def __init__(
        self, folder: str, version: bytes, *, lock_timeout: float = LOCK_TIMEOUT, say: Say = lambda _: None
    ) -> None:
        self.path = os.path.join(folder, FILE)
        self._version = version
        self._say = say
        self._writes = self._reads = True
        with self._explained():
            os.makedirs(folder, exist_ok=True)
            if not os.path.exists(self.path):
                _create(folder, self.path)
            if not os.path.isfile(self.path):
                raise self.unusable_error("it is not a regular file")
            self._file = sqlite3.connect(self.path, timeout=lock_timeout, isolation_level=None)
        try:
            with self._explained():
                _bounded(self._file)
                self._check()
                self._file.execute("PRAGMA synchronous = NORMAL")  # a crash of the system may cost the last answers
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __contains__(self, key: bytes) -> bool:
        return self._found(key) is not None

    def get(self, key: bytes) -> bytes | None:
        """The answer under ``key``, if there is one."""
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
        """Stores ``answer`` under ``key``; the first answer stays, unless it is damaged."""
        if not self._writes or len(answer) > MAX_ENTRY:
            return
        row = (key, self._version, _today(), answer, _seal(key, answer))
        try:
            with self._explained():
                added = self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row).rowcount
                if not added and self._found(key) is None:
                    self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)
        except Unavailable as away:
            self._writes = False
            self._say(f"no more results are stored in the cache {self.path}: {away}")

    def remove(self, key: bytes) -> None:
        """Removes an answer that turned out to be invalid."""
        if self._writes:
            with suppress(Unavailable), self._explained():
                self._file.execute("DELETE FROM answers WHERE key = ?", (key,))

    def _found(self, key: bytes) -> tuple[bytes, int] | None:
        """The answer under ``key`` and the day of its last use, if it is intact."""
        if not self._reads:
            return None
        asked = f"SELECT answer, seal, day FROM answers WHERE key = ? AND {_SOUND} AND length(answer) <= {MAX_ENTRY}"  # noqa: S608 - no text from outside
        try:
            with self._explained():
                row = self._file.execute(asked, (key,)).fetchone()
        except Unavailable as away:
            self._reads = self._writes = False
            self._say(f"continuing without the cache {self.path}: {away}")
            return None
        return None if row is None or row[1] != _seal(key, row[0]) else (row[0], row[2])

    def statistics(self) -> Statistics:
        """Statistics of the cache."""
        with self._explained():
            answers, own, oldest, size = self._file.execute(
                "SELECT count(*), coalesce(sum(version = ?), 0), min(CAST(day AS INTEGER)),"
                " coalesce(sum(length(answer)), 0) FROM answers",
                (self._version,),
            ).fetchone()
        days = 0 if oldest is None else _today() - oldest
        return Statistics(path=self.path, answers=answers, own=own, bytes=size, days=days)

    def own_answers(self) -> Iterator[tuple[bytes, bytes]]:
        """The intact answers of this version, with their keys."""
        with self._explained():
            asked = f"SELECT key FROM answers WHERE version = ? AND {_SOUND}"  # noqa: S608 - no text from outside
            keys = [key for (key,) in self._file.execute(asked, (self._version,))]
        for key in keys:
            found = self._found(key)
            if found is not None:
                yield key, found[0]

    def count_damaged(self) -> int:
        """The number of damaged entries, after reading everything; ``InputError`` if the file is damaged."""
        with self._explained():
            (said,) = self._file.execute("PRAGMA integrity_check(1)").fetchone()
            rows = self._file.execute("SELECT count(*) FROM answers").fetchone()[0]
            asked = f"SELECT key FROM answers WHERE {_SOUND}"  # noqa: S608 - no text from outside
            keys = [key for (key,) in self._file.execute(asked)]
        if said != "ok":
            raise self.unusable_error(said)
        return int(rows) - sum(self._found(key) is not None for key in keys)

    def prune(self, *, unused: int | None = None, others: bool = False) -> int:
        """Removes answers that were not used for ``unused`` days, and those of ``others``, that is other versions; how
        many were removed.
        """
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
            raise self.unusable_error("it is not an mcheck cache")
        if layout != LAYOUT:
            raise self.unusable_error(f"its layout is {layout}, but this version of mcheck uses {LAYOUT}")
        # A view or a trigger of somebody else would be run by what is asked here.
        there = self._file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 2").fetchall()
        if there != [(_SCHEMA.strip(),)]:
            raise self.unusable_error("its tables are not those of an mcheck cache")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _SURROUNDINGS:
                raise Unavailable(str(error)) from None
            raise self.unusable_error(str(error)) from None
        except (UnicodeError, OverflowError, TypeError):  # what SQLite is made to say by a file that is damaged
            raise self.unusable_error("it is damaged") from None
        except OSError as error:
            if error.errno in _FULL:
                raise Unavailable(error.strerror or str(error)) from None
            raise InputError(f"cannot use the cache {self.path}: {error.strerror or error}") from None

    def unusable_error(self, why: str) -> InputError:
        """The error that says why the cache cannot be used, and what to do."""
        hint = "remove the file, name another folder with --cache, or go without"
        return InputError(f"cannot use the cache {self.path}: {why}", hint=hint)


def lock_timeout(timeout: float | None) -> float:
    """The seconds that a command with this time limit may wait for other processes at the cache."""
    return LOCK_TIMEOUT if timeout is None else min(LOCK_TIMEOUT, timeout / SHARE)


@contextmanager
def open_store(
    folder: str | None, *, timeout: float | None = None, say: Say = lambda _: None
) -> Iterator[Store | None]:
    """The cache in ``folder`` for this version of mcheck, created if missing.

    ``None`` without a folder or, after a message to ``say``, if the environment prevents its use.
    """
    if folder is None:
        yield None
        return
    from mcheck.checking.cache.keys import version

    try:
        store = Store(folder, version(), lock_timeout=lock_timeout(timeout), say=say)
    except Unavailable as away:
        say(f"continuing without the cache {os.path.join(folder, FILE)}: {away}")
        yield None
        return
    with closing(store):
        yield store


def _bounded(file: sqlite3.Connection) -> None:
    """Settings for an untrusted file: no more memory than an entry takes, no functions, and invalid text as it is."""
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ENTRY + 4096)
    file.execute("PRAGMA trusted_schema = OFF")
    file.text_factory = lambda data: data.decode("utf-8", "replace")


def _create(folder: str, path: str) -> None:
    """Creates an empty cache atomically: many processes may create it at once."""
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
