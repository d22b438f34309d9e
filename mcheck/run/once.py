"""Nothing twice: results that a store has are taken from it, and those that are computed are kept there.

A result stands under the text of its test, that of the model with its includes, the options and mcheck's own code,
never under a path. What was cut by a limit of time or memory, or ended in a problem, is not kept, so the limits are no
part of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from mcheck.errors import McheckError
from mcheck.reasons import Cause, Reasons
from mcheck.records import dataclass
from mcheck.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.run.means import Means
from mcheck.run.single import model_of

if TYPE_CHECKING:
    from mcheck.store.database import Store

BEYOND = ("model", "timeout", "memory")
"""Settings that are no part of a key: the model's text is, and a limit that cut an answer keeps it out."""


class Lasting(Protocol):
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


T = TypeVar("T", bound=Lasting)
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
    """What a test's result is kept under, digests of the texts of which it has to be the result, the model's name."""

    key: bytes
    source: bytes
    model: str
    name: str
    tells: bool


class Memory(Generic[T]):
    """The results of one command under one set of options, in a store.

    ``texts`` reads what a file's result rests on. ``resumes``: of a run that may be interrupted and goes on with what
    it has, what its limits cut included; the limits are part of the key then.
    """

    def __init__(
        self,
        store: Store,
        command: str,
        settings: Settings,
        *,
        resumes: bool = False,
        texts: Callable[[str], Texts] | None = None,
        **more: object,
    ) -> None:
        self._store = store
        self._texts = texts or texts_of
        self._model = settings.model
        self._all = resumes
        beyond = BEYOND[:1] if resumes else BEYOND
        kept = {name: value for name, value in asdict(settings).items() if name not in beyond}
        self._options: Mapping[str, object] = {"command": command, **kept, **more}
        self._digests: dict[str, str] = {}

    def key(self, case: Case, *more: str) -> Key | None:
        """The key of a test, and of what ``more`` its result rests on; none if its head or model cannot be read."""
        from mcheck.store.keys import digest, key_of

        try:
            texts = self._texts(case.path)
            name = self._model or texts.model or DEFAULT_MODEL
            model = self._digest(name)
        except (McheckError, RecursionError):
            return None
        parts = (texts.source, texts.name, model, *texts.others, *more)
        return Key(key_of(self._options, *parts), digest(texts.source), model, name, texts.tells)

    def _digest(self, model: str) -> str:
        """That of a model as it stood when the first test asked for it."""
        found = self._digests.get(model)
        if found is None:
            found = self._digests[model] = model_of(model).digest
        return found

    def has(self, key: Key) -> bool:
        """Whether there is a result."""
        return key.key in self._store

    def recall(self, key: Key, case: Case) -> T | None:
        """The result about the file of ``case``."""
        from mcheck.store.packing import Foreign, unpack

        data = self._store.get(key.key)
        if data is None:
            return None
        try:
            found: T = unpack(data, case.path)
        except Foreign as error:
            raise self._store.unusable(f"an answer in it is none: {error}") from None
        return found.named(case.path, key.name)

    def keep(self, key: Key, result: T) -> None:
        """Keeps a result, if it lasts and is about the texts of its key: a file may be edited while tests run."""
        from mcheck.store.keys import digest
        from mcheck.store.packing import Foreign, pack

        unread = self._all and not result.source  # the process that had the test was stopped
        about = unread or (result.digest == key.model and digest(result.source) == key.source)
        died = any(r.cause is Cause.DIED for r in result.reasons)
        if not about or died or not (result.lasting or (self._all and result.cut)):
            return
        try:
            data = pack(result, result.path, elsewhere=key.tells)
        except Foreign:
            return
        self._store.put(key.key, data)


def texts_of(path: str) -> Texts:
    """Those of a litmus test, with what it includes; raises ``McheckError``."""
    from mcheck import syntax

    head = syntax.head(path)
    return Texts(head.source.text, head.name, head.model, tuple(syntax.included(head.source)))


def memory_of(
    means: Means, command: str, settings: Settings, texts: Callable[[str], Texts] | None = None, **more: object
) -> Memory[T] | None:
    """The memory that a run has by its means, if any."""
    if means.store is None:
        return None
    return Memory(means.store, command, settings, resumes=means.resumes, texts=texts, **more)


def once(
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
    keys = [memory.key(case, *more(case)) for case in cases]
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
