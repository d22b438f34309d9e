"""By which means the tests of a run get their results: processes here, or machines elsewhere, and a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from mcheck.base.records import dataclass
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pool import Lost, Task, default_jobs, run_cases

if TYPE_CHECKING:
    from mcheck.checking.cache.database import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """``jobs`` tests at a time (``None``: as many as there are cores), on this machine or by the workers of the
    ``scheduler`` of Dask at an address (``mcheck.checking.machines``), with the certificates in the folder ``tls``.
    What ``store`` has is not asked again; ``resumes``: it is that of an interrupted run, which limits are a part of.
    ``say`` hears what a person may have to know meanwhile.
    """

    jobs: int | None = None
    scheduler: str | None = None
    tls: str | None = None
    store: Store | None = None
    resumes: bool = False
    say: Callable[[str], None] = lambda _: None


def compute(
    cases: Sequence[Case],
    settings: Settings,
    means: Backend,
    task: Task[T],
    lost: Lost[T],
    prepare: Callable[[], None],
    others: tuple[str, ...] = (),
) -> Iterator[T]:
    """The results of ``cases`` in their order. ``prepare`` imports what ``task`` needs, before processes are forked;
    ``others`` are models that it needs beside a test's own.
    """
    if not cases:
        return iter(())
    jobs = means.jobs or default_jobs()
    if means.scheduler is None:
        prepare()
        return run_cases(cases, settings, jobs, task, lost)
    from mcheck.checking.machines.client import Job, run_remote

    job = Job(task=task, lost=lost, settings=settings, others=others)
    return run_remote(cases, job, means.scheduler, jobs, means.say, means.tls)
