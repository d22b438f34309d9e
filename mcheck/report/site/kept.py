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
from mcheck.check.case import Options
from mcheck.check.suite import texts_of_file
from mcheck.observed import published
from mcheck.report.site.content import Page
from mcheck.run.case import Case, Settings
from mcheck.run.once import Memory, Texts
from mcheck.run.single import model_of
from mcheck.store.database import Store, opened
from mcheck.store.keys import version


@contextmanager
def at_rest(folder: str | None) -> Iterator[None]:
    """Looks whether the store in ``folder`` can be used; at the end all is in one file again."""
    with opened(folder):
        pass
    yield
    with opened(folder):
        pass


def once_here(case: Case, folder: str | None, settings: Settings, compute: Callable[[], Page]) -> Page:
    """The page of ``case`` from the store in ``folder``, or computed and kept there."""
    if folder is None:
        return compute()
    kept = _kept(folder, settings)
    key = kept.key(case, case.path)  # errors stand on pages as text, with their places
    page = None if key is None else kept.recall(key, case)
    if page is None:
        page = compute()
        if key is not None:
            kept.keep(key, page)
    return page


@cache
def _kept(folder: str, settings: Settings) -> Memory[Page]:
    """The pages in ``folder``, by this process's own connection."""
    return memory(Store(folder, version()), settings)


def memory(store: Store, settings: Settings) -> Memory[Page]:
    """A page rests on all models and on what chips showed, beside what its answer does."""
    others = {name: model_of(name).digest for name in model_names()}
    seen = published()
    observed = sha256(seen.read_bytes()).hexdigest() if seen.exists() else ""
    options = Options()

    def texts(path: str) -> Texts:
        return texts_of_file(path, options)

    return Memory(store, "doc", settings, texts=texts, others=others, observed=observed)
