"""Cached results: results in the store are reused, others are computed and stored.

The key of a result is made of the text of its test, that of the model with its includes, the options and mcheck's own
code, never of a path. Results that a limit of time or memory cut, or that ended in a problem, are not stored, so limits
are not part of the key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from mcheck.base.errors import McheckError
from mcheck.base.files import is_regular_file
from mcheck.base.reasons import Cause, Reasons
from mcheck.base.records import dataclass, replace
from mcheck.checking.backends import Backend
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.checking.run.pool import default_jobs, run_cases
from mcheck.checking.run.single import choose_model

if TYPE_CHECKING:
    from mcheck.checking.backends import AnswerStore
    from mcheck.checking.cache.entries import KeyInputs

BEYOND = ("model", "timeout", "processor_time", "memory")
"""Settings that are not part of a key: the model's text is, and a result that a limit cut is not stored."""
SHARE = 4
"""The divisor of a test's time limit for making its key."""


class CacheableResult(Protocol):
    """What cacheable results have in common. ``source`` and ``digest`` identify the texts that the result is about."""

    @property
    def path(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def cacheable(self) -> bool: ...
    @property
    def cut(self) -> bool: ...
    @property
    def reasons(self) -> Reasons: ...
    def with_names(self, path: str, model: str) -> Self: ...


T = TypeVar("T", bound=CacheableResult)
Compute = Callable[[Sequence[Case]], Iterator[T]]
"""Computes the results of cases, in their order."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts that the result for a file depends on, the ``source`` first, and its name and model.

    ``names_other_files``: locations in other files come from the text itself, whatever those files hold.
    """

    source: str
    name: str = ""
    model: str | None = None
    others: tuple[str, ...] = ()
    names_other_files: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """The cache key of a test with its inputs, the model's name, and whether the text itself names locations in other
    files.
    """

    key: bytes
    made: KeyInputs
    model: str
    names_other_files: bool


class ResultCache(Generic[T]):
    """The cached results, of a ``kind``, of one command under one set of options.

    ``texts`` reads what a file's result depends on. ``resumes``: the results are those of an interrupted run, including
    results that its limits cut, so the limits are part of the key. ``jobs``: the number of processes that make keys.
    """

    def __init__(
        self,
        store: AnswerStore,
        kind: type[T],
        command: str,
        settings: Settings,
        *,
        resumes: bool = False,
        texts: Callable[[Case], Texts] | None = None,
        jobs: int = 1,
        **more: object,
    ) -> None:
        from mcheck.checking.cache.keys import options_text

        self._store = store
        self._kind = kind
        self._texts = texts or read_texts
        self._settings = settings
        self._jobs = jobs
        self._all = resumes
        beyond = BEYOND[:1] if resumes else BEYOND
        kept = {name: value for name, value in asdict(settings).items() if name not in beyond}
        self._head = options_text({"command": command, **kept, **more})
        self._digests: dict[tuple[str | None, str], str] = {}

    def keys(self, cases: Sequence[Case], more: Callable[[Case], tuple[str, ...]]) -> list[Key | None]:
        """The keys of tests, computed within the limits of a test: what is slow there may be slow here.

        A part of the time limit has to do; a test whose key takes longer has none, and its own process reports the
        problem.
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
        """The key of a test, with ``more`` that its result depends on.

        ``None`` if its head or model cannot be read, or only once, as a pipe.
        """
        from mcheck.checking.cache.entries import KeyInputs
        from mcheck.checking.cache.keys import digest

        if case.text is None and not is_regular_file(case.path):
            return None
        try:
            texts = self._texts(case)
            model = self._digest(texts.model, case.path)
        except (McheckError, RecursionError):
            return None
        parts = (texts.source, texts.name, model, *texts.others, *more)
        made = KeyInputs(self._head, tuple(map(digest, parts)))
        return Key(made.key(), made, self._settings.model or texts.model or DEFAULT_MODEL, texts.names_other_files)

    def _digest(self, model: str | None, path: str) -> str:
        """The digest of the model that a test names, as it was when the first test of a folder named it."""
        known = (self._settings.model, "") if self._settings.model else (model, os.path.dirname(path))
        found = self._digests.get(known)
        if found is None:
            found = self._digests[known] = choose_model(self._settings.model, model, path).digest
        return found

    def has(self, key: Key) -> bool:
        """Whether there is a result."""
        return key.key in self._store

    def recall(self, key: Key, case: Case) -> T | None:
        """The stored result for the file of ``case``; ``None`` if it is damaged, or about other texts."""
        from mcheck.checking.cache.entries import unpack_entry
        from mcheck.checking.cache.packing import InvalidAnswer, unpack

        data = self._store.get(key.key)
        if data is None:
            return None
        try:
            made, answer = unpack_entry(data)
            found = unpack(self._kind, answer, case.path, elsewhere=key.names_other_files)
        except InvalidAnswer:
            found = None
        if found is None or made != key.made or not (made.fits(found) or (self._all and is_stopped_result(found))):
            self._store.remove(key.key)
            return None
        return found.with_names(case.path, key.model)

    def keep(self, key: Key, result: T) -> None:
        """Stores a result if it can be cached and is about the texts of its key.

        A file may be edited while tests run.
        """
        from mcheck.checking.cache.entries import pack_entry
        from mcheck.checking.cache.packing import InvalidAnswer, pack

        about = key.made.fits(result) or (self._all and is_stopped_result(result))
        died = any(r.cause is Cause.DIED for r in result.reasons)
        if not about or died or not (result.cacheable or (self._all and result.cut)):
            return
        try:
            data = pack(result, result.path, elsewhere=key.names_other_files)
        except InvalidAnswer:
            return
        self._store.put(key.key, pack_entry(key.made, data))


def is_stopped_result(result: CacheableResult) -> bool:
    """Whether this is the placeholder of a process that a limit stopped."""
    return result.cut and not result.source


def read_texts(case: Case) -> Texts:
    """The texts of a litmus test and its includes; raises ``McheckError``."""
    from mcheck.frontend import litmus

    head = litmus.read_header(case.path, case.text)
    return Texts(head.source.text, head.name, head.model, tuple(litmus.read_included_texts(head.source)))


def open_result_cache(
    means: Backend,
    kind: type[T],
    command: str,
    settings: Settings,
    texts: Callable[[Case], Texts] | None = None,
    **more: object,
) -> ResultCache[T] | None:
    """The cache for results of a ``kind``, if the run has a store."""
    if means.store is None:
        return None
    jobs = means.jobs or default_jobs()
    return ResultCache(means.store, kind, command, settings, resumes=means.resumes, texts=texts, jobs=jobs, **more)


def compute_uncached(
    cases: Sequence[Case],
    memory: ResultCache[T] | None,
    compute: Compute[T],
    more: Callable[[Case], tuple[str, ...]] = lambda _: (),
) -> Iterator[T]:
    """The results of ``cases`` in their order, from the cache or computed and stored.

    ``more``: what else the result of a case depends on.
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
