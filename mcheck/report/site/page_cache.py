"""The cache of pages in a store.

Each worker process reads and writes the store itself, so that pages are not sent between processes. A connection does
not survive a fork, so each process opens its own, and none is open when processes are forked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256

from mcheck.cat.model_files import model_names
from mcheck.checking.cache.database import Say, Store, Unavailable, lock_timeout, open_store
from mcheck.checking.cache.keys import version
from mcheck.checking.check.command import read_file_texts
from mcheck.checking.result_cache import ResultCache, Texts
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.single import load_model
from mcheck.report.hardware_results import observation_file
from mcheck.report.site.content import Page


@contextmanager
def open_page_store(folder: str | None, timeout: float | None, say: Say) -> Iterator[str | None]:
    """Yield the folder if its store is usable; at the end, merge the store into one file."""
    with open_store(folder, timeout=timeout, say=say) as store:
        usable = folder if store is not None else None
    yield usable
    with open_store(usable, timeout=timeout, say=say):
        pass


def load_or_compute(case: Case, folder: str | None, settings: Settings, compute: Callable[[], Page]) -> Page:
    """The page of ``case`` from the store in ``folder``, or computed and stored there."""
    if folder is None:
        return compute()
    kept = _kept(folder, settings)
    key = None if kept is None else kept.key(case, case.path)  # pages contain errors as text, with their paths
    page = None if kept is None or key is None else kept.recall(key, case)
    if page is None:
        page = compute()
        if kept is not None and key is not None:
            kept.keep(key, page)
    return page


@cache
def _kept(folder: str, settings: Settings) -> ResultCache[Page] | None:
    """The page memory of ``folder`` with a connection of this process; None if the store is unusable, which was
    reported when it was opened first.
    """
    try:
        return page_memory(Store(folder, version(), lock_timeout=lock_timeout(settings.timeout)), settings)
    except Unavailable:
        return None


def page_memory(store: Store, settings: Settings) -> ResultCache[Page]:
    """The memory of pages; besides what an answer depends on, a page depends on all models and on the observations."""
    others = {name: load_model(name).digest for name in model_names()}
    seen = observation_file()
    observed = sha256(seen.read_bytes()).hexdigest() if seen.exists() else ""
    options = Options()

    def texts(case: Case) -> Texts:
        return read_file_texts(case, options)

    return ResultCache(store, Page, "doc", settings, texts=texts, others=others, observed=observed)
