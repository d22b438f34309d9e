"""Pages that a store has are not made again.

Whoever makes a page asks the store itself, in its own process: what is kept travels no further than to the file that is
written. A connection does not survive a fork, so each process opens one, and none is open when processes are forked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256

from mcheck.cat.library import model_names
from mcheck.checking.cache.database import Say, Store, Unavailable, lock_timeout, open_store
from mcheck.checking.cache.keys import version
from mcheck.checking.check.case import Options
from mcheck.checking.check.suite import read_file_texts
from mcheck.checking.result_cache import ResultCache, Texts
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.single import load_model
from mcheck.report.hardware_results import published
from mcheck.report.site.content import Page


@contextmanager
def at_rest(folder: str | None, timeout: float | None, say: Say) -> Iterator[str | None]:
    """The folder, if the store in it can be used; at the end all is in one file again."""
    with open_store(folder, timeout=timeout, say=say) as store:
        usable = folder if store is not None else None
    yield usable
    with open_store(usable, timeout=timeout, say=say):
        pass


def once_here(case: Case, folder: str | None, settings: Settings, compute: Callable[[], Page]) -> Page:
    """The page of ``case`` from the store in ``folder``, or computed and kept there."""
    if folder is None:
        return compute()
    kept = _kept(folder, settings)
    key = None if kept is None else kept.key(case, case.path)  # errors stand on pages as text, with their places
    page = None if kept is None or key is None else kept.recall(key, case)
    if page is None:
        page = compute()
        if kept is not None and key is not None:
            kept.keep(key, page)
    return page


@cache
def _kept(folder: str, settings: Settings) -> ResultCache[Page] | None:
    """The pages in ``folder``, by this process's own connection; none where the surroundings keep it from being used:
    whoever looked at the store before has said so.
    """
    try:
        return memory(Store(folder, version(), lock_timeout=lock_timeout(settings.timeout)), settings)
    except Unavailable:
        return None


def memory(store: Store, settings: Settings) -> ResultCache[Page]:
    """A page rests on all models and on what chips showed, beside what its answer does."""
    others = {name: load_model(name).digest for name in model_names()}
    seen = published()
    observed = sha256(seen.read_bytes()).hexdigest() if seen.exists() else ""
    options = Options()

    def texts(path: str) -> Texts:
        return read_file_texts(path, options)

    return ResultCache(store, Page, "doc", settings, texts=texts, others=others, observed=observed)
