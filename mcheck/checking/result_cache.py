"""Nothing twice: results that a store has are taken from it, and those that are computed are kept there.

A result stands under the text of its test, that of the model with its includes, the options and mcheck's own code,
never under a path. What was cut by a limit of time or memory, or ended in a problem, is not kept, so the limits are no
part of the key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from mcheck.base.errors import McheckError
from mcheck.base.files import is_regular_file
from mcheck.base.reasons import Cause, Reasons
from mcheck.base.records import dataclass
from mcheck.checking.backends import Backend
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.checking.run.pool import default_jobs, run_cases
from mcheck.checking.run.single import model_for

if TYPE_CHECKING:
    from mcheck.checking.cache.database import Store
    from mcheck.checking.cache.entries import Made

BEYOND = ("model", "timeout", "memory")
"""Settings that are no part of a key: the model's text is, and a limit that cut an answer keeps it out."""
SHARE = 4
"""The part of a test's time that making its key may take."""


class CacheableResult(Protocol):
    """What results have in common. ``source`` and ``digest`` are those of the texts that the answer is about."""

    @property
    def path(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def lasting(self) -> bool: ...
    @property
    def cut(self) -> bool: ...
    @property
    def reasons(self) -> Reasons: ...
    def named(self, path: str, model: str) -> Self: ...


T = TypeVar("T", bound=CacheableResult)
Compute = Callable[[Sequence[Case]], Iterator[T]]
"""The results of cases, in their order."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts that a file's result rests on, the ``source`` first, and what its head says of it.

    ``tells``: places in other files are what the text itself says of them, whatever these hold.
    """

    source: str
    name: str = ""
    model: str | None = None
    others: tuple[str, ...] = ()
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """What a test's result is kept under and what that is made of, the model's name, and whether places in other files
    are what the text itself says.
    """

    key: bytes
    made: Made
    model: str
    tells: bool


class Memory(Generic[T]):
    """The results, of a ``kind``, of one command under one set of options, in a store.

    ``texts`` reads what a file's result rests on. ``resumes``: of a run that may be interrupted and goes on with what
    it has, what its limits cut included; the limits are part of the key then. ``jobs`` keys are made at a time.
    """

    def __init__(
        self,
        store: Store,
        kind: type[T],
        command: str,
        settings: Settings,
        *,
        resumes: bool = False,
        texts: Callable[[str], Texts] | None = None,
        jobs: int = 1,
        **more: object,
    ) -> None:
        from mcheck.checking.cache.keys import head_of

        self._store = store
        self._kind = kind
        self._texts = texts or texts_of
        self._settings = settings
        self._jobs = jobs
        self._all = resumes
        beyond = BEYOND[:1] if resumes else BEYOND
        kept = {name: value for name, value in asdict(settings).items() if name not in beyond}
        self._head = head_of({"command": command, **kept, **more})
        self._digests: dict[tuple[str | None, str], str] = {}

    def keys(self, cases: Sequence[Case], more: Callable[[Case], tuple[str, ...]]) -> list[Key | None]:
        """The keys of tests, read within the limits of a test: what may take long there may take long here.

        A part of the time has to do, and a test whose key is not made until then has none: it is for its own process
        to say what is the matter.
        """
        settings = self._settings
        if settings.timeout is not None:
            settings = replace(settings, timeout=settings.timeout / SHARE)

        def made(case: Case, _: Settings) -> Key | None:
            try:
                return self.key(case, *more(case))
            except (McheckError, MemoryError):
                return None

        limited = settings.timeout is not None or settings.memory is not None
        return list(run_cases(cases, settings, self._jobs if limited else 1, made, lambda *_: None))

    def key(self, case: Case, *more: str) -> Key | None:
        """The key of a test, and of what ``more`` its result rests on; none if its head or model cannot be read, or
        only once, as a pipe.
        """
        from mcheck.checking.cache.entries import Made
        from mcheck.checking.cache.keys import digest

        if not is_regular_file(case.path):
            return None
        try:
            texts = self._texts(case.path)
            model = self._digest(texts.model, case.path)
        except (McheckError, RecursionError):
            return None
        parts = (texts.source, texts.name, model, *texts.others, *more)
        made = Made(self._head, tuple(map(digest, parts)))
        return Key(made.key(), made, self._settings.model or texts.model or DEFAULT_MODEL, texts.tells)

    def _digest(self, model: str | None, path: str) -> str:
        """That of the model of a test that names ``model``, as it stood when the first one of a folder asked for it."""
        known = (self._settings.model, "") if self._settings.model else (model, os.path.dirname(path))
        found = self._digests.get(known)
        if found is None:
            found = self._digests[known] = model_for(self._settings.model, model, path).digest
        return found

    def has(self, key: Key) -> bool:
        """Whether there is a result."""
        return key.key in self._store

    def recall(self, key: Key, case: Case) -> T | None:
        """The result about the file of ``case``; none of what is damaged, or about other texts."""
        from mcheck.checking.cache.entries import parted
        from mcheck.checking.cache.packing import Foreign, unpack

        data = self._store.get(key.key)
        if data is None:
            return None
        try:
            made, answer = parted(data)
            found = unpack(self._kind, answer, case.path, elsewhere=key.tells)
        except Foreign:
            found = None
        if found is None or made != key.made or not (made.fits(found) or (self._all and unread(found))):
            self._store.remove(key.key)
            return None
        return found.named(case.path, key.model)

    def keep(self, key: Key, result: T) -> None:
        """Keeps a result, if it lasts and is about the texts of its key: a file may be edited while tests run."""
        from mcheck.checking.cache.entries import entry
        from mcheck.checking.cache.packing import Foreign, pack

        about = key.made.fits(result) or (self._all and unread(result))
        died = any(r.cause is Cause.DIED for r in result.reasons)
        if not about or died or not (result.lasting or (self._all and result.cut)):
            return
        try:
            data = pack(result, result.path, elsewhere=key.tells)
        except Foreign:
            return
        self._store.put(key.key, entry(key.made, data))


def unread(result: CacheableResult) -> bool:
    """Whether this stands for the result of a process that was stopped by a limit."""
    return result.cut and not result.source


def texts_of(path: str) -> Texts:
    """Those of a litmus test, with what it includes; raises ``McheckError``."""
    from mcheck.frontend import litmus

    head = litmus.read_header(path)
    return Texts(head.source.text, head.name, head.model, tuple(litmus.read_included_texts(head.source)))


def memory_of(
    means: Backend,
    kind: type[T],
    command: str,
    settings: Settings,
    texts: Callable[[str], Texts] | None = None,
    **more: object,
) -> Memory[T] | None:
    """The memory that a run has by its means for results of a ``kind``, if any."""
    if means.store is None:
        return None
    jobs = means.jobs or default_jobs()
    return Memory(means.store, kind, command, settings, resumes=means.resumes, texts=texts, jobs=jobs, **more)


def compute_uncached(
    cases: Sequence[Case],
    memory: Memory[T] | None,
    compute: Compute[T],
    more: Callable[[Case], tuple[str, ...]] = lambda _: (),
) -> Iterator[T]:
    """The results of ``cases`` in their order: recalled, or computed and kept. ``more`` is what else the result of a
    case rests on.
    """
    if memory is None:
        yield from compute(cases)
        return
    keys = memory.keys(cases, more)
    known = [key is not None and memory.has(key) for key in keys]
    computed = compute([case for case, there in zip(cases, known, strict=True) if not there])
    for case, key, there in zip(cases, keys, known, strict=True):
        result: T | None = None
        if there and key is not None:
            result = memory.recall(key, case)
        if result is None:
            # What was there has been pruned meanwhile: computed by itself.
            result = next(iter(compute([case]))) if there else next(computed)
            if key is not None:
                memory.keep(key, result)
        yield result
