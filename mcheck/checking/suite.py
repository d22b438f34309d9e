"""Answers about many files: the results in the order of the files, cached or computed in processes or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from mcheck.base.records import dataclass, replace
from mcheck.checking.backends import Backend, compute_cases
from mcheck.checking.result_cache import Texts, compute_uncached, open_result_cache, read_texts
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Settings
from mcheck.checking.run.pool import OnLost, Task
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import load_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that answers for each of many files.

    ``task`` gives the result for a file, ``lost`` a replacement if its process died; ``preload`` imports what every
    file needs, before processes are forked. ``name`` and ``options`` are part of the cache keys, and so are the
    ``texts`` that the result for a file depends on.
    """

    name: str
    task: Task[Result]
    lost: OnLost[Result]
    preload: Callable[[Settings], None]
    texts: Callable[[Case], Texts] = read_texts
    options: Mapping[str, object] = field(default_factory=dict)


def answer_cases(cases: Sequence[Case], settings: Settings, command: Command, means: Backend) -> Iterator[Result]:
    """The results for ``cases`` in their order, as they are ready. An unreadable model raises at once."""
    load_model(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Result]:
        return compute_cases(these, settings, means, command.task, command.lost, lambda: command.preload(settings))

    cache = open_result_cache(means, Result, command.name, settings, command.texts, **command.options)
    answers = zip(cases, compute_uncached(cases, cache, fresh), strict=True)
    return (answer if case.expected is None else replace(answer, expected=case.expected) for case, answer in answers)
