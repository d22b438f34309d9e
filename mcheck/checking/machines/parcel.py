"""The parcels that are sent to workers: tests and models as text, the functions to apply, and results as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcheck.base.errors import McheckError
from mcheck.base.files import is_regular_file
from mcheck.base.reasons import Reason
from mcheck.base.records import dataclass
from mcheck.cat.ast import Texts
from mcheck.cat.library import test_model_name
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.checking.run.single import choose_model, load_model

MAX_TESTS = 256
"""The maximum number of tests in a parcel."""
MAX_CHARACTERS = 1 << 20
"""The maximum number of characters of the tests in a parcel, unless it holds a single test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Tests with their texts, the models that they use by name, and functions by reference.

    ``task`` gives the result of a test, ``lost`` a replacement if its process died. ``version`` is that of the mcheck
    that packed it (``mcheck.checking.cache.keys``).
    """

    cases: tuple[Case, ...]
    models: tuple[tuple[str, Texts], ...]
    settings: Settings
    task: Callable[[Case, Settings], Any]
    lost: Callable[[Case, Settings, Reason, float], Any]
    version: bytes


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A test that is not sent: it, or its model, cannot be read, and the result says why."""

    index: int


@dataclass(frozen=True, slots=True)
class Item:
    """A test of a run with its text."""

    index: int
    case: Case
    models: tuple[tuple[str, Texts], ...]


def pack_item(index: int, case: Case, settings: Settings, others: Sequence[str] = ()) -> Item | Unpacked:
    """A test packed with its model and ``others``."""
    from mcheck.frontend import litmus

    if not is_regular_file(case.path):  # a pipe is read once, and within the limits of its test
        return Unpacked(index)
    try:
        head = litmus.read_header(case.path)
        own = test_model_name(head.model, case.path) if head.model else DEFAULT_MODEL
        first = choose_model(settings.model, head.model, case.path)
        read = {settings.model or own: first, **{name: load_model(name) for name in others}}
        models = tuple((name, model.texts) for name, model in read.items() if model.texts is not None)
    except (McheckError, RecursionError):
        return Unpacked(index)
    return Item(index, Case(case.path, text=head.source.text), models)


def estimate_cost(case: Case) -> float:
    """An estimate of a test's cost, in units of a text of 1,000 characters.

    Over the suites the time of a test grows with the square of its length (the exponent of the best fit is 1.94).
    """
    return (len(case.text or "") / 1000) ** 2
