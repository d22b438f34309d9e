"""Where the tests of a run are computed: worker processes here, or other machines, with a cache of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from mcheck.base.records import dataclass
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pool import OnLost, Task, default_jobs, run_cases

T = TypeVar("T")


class AnswerStore(Protocol):
    """Where answers are kept as bytes by their keys."""

    def __contains__(self, key: bytes) -> bool: ...
    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, answer: bytes) -> None: ...
    def remove(self, key: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """How the tests of a run are computed.

    ``jobs`` tests at a time (``None``: one for each core), on this machine or by the workers of the Dask ``scheduler``
    at an address (``mcheck.checking.machines``), with the certificates in the folder ``tls``. Results in ``store`` are
    not computed again; ``resumes``: the store is that of an interrupted run, whose limits are part of the key. ``say``
    receives progress messages for the user.
    """

    jobs: int | None = None
    scheduler: str | None = None
    tls: str | None = None
    store: AnswerStore | None = None
    resumes: bool = False
    say: Callable[[str], None] = lambda _: None


def compute_cases(
    cases: Sequence[Case],
    settings: Settings,
    means: Backend,
    task: Task[T],
    lost: OnLost[T],
    prepare: Callable[[], None],
    others: tuple[str, ...] = (),
) -> Iterator[T]:
    """The results of ``cases``, in their order.

    ``prepare`` imports what ``task`` needs before processes are forked; ``others`` are models needed beside a test's
    own.
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
