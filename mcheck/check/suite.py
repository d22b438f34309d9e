"""Many files: independent ones on several processes, answers in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.single import lost, task
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.once import Memory, once
from mcheck.run.pool import default_jobs, run_cases
from mcheck.run.single import model_of

if TYPE_CHECKING:
    from mcheck.store.database import Store


def check_files(
    cases: Sequence[Case], settings: Settings, options: Options, jobs: int | None, store: Store | None = None
) -> Iterator[Checked]:
    """The answers about ``cases``, in their order, as they come; what ``store`` has is not asked again. An unreadable
    model raises before any file is read.
    """
    model_of(settings.model or DEFAULT_MODEL)
    memory: Memory[Checked] | None = None if store is None else Memory(store, "check", settings, **asdict(options))

    def compute(these: Sequence[Case]) -> Iterator[Checked]:
        if not these:
            return iter(())
        _preload()
        return run_cases(these, settings, jobs or default_jobs(), task(options), lost)

    return once(cases, memory, compute)


def _preload() -> None:
    """Imports what every file needs, so that forked workers have it already."""
    import mcheck.syntax  # noqa: F401 - imported for the workers
    from mcheck.policy.engines import preload

    preload("protocol")
