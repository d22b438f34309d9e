"""Many files: independent ones on several processes, answers in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.single import lost, task
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.pool import default_jobs, run_cases
from mcheck.run.single import model_of


def check_files(cases: Sequence[Case], settings: Settings, options: Options, jobs: int | None) -> Iterator[Checked]:
    """The answers about ``cases``, in their order, as they come. An unreadable model raises before any file is read."""
    _preload(settings)
    return run_cases(cases, settings, jobs or default_jobs(), task(options), lost)


def _preload(settings: Settings) -> None:
    """Imports what every file needs and reads the model, so that forked workers have them already."""
    import mcheck.syntax  # noqa: F401 - imported for the workers
    from mcheck.policy.engines import preload

    preload("protocol")
    model_of(settings.model or DEFAULT_MODEL)
