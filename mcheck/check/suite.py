"""Many files: independent ones on several processes, answers in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.single import lost
from mcheck.check.task import task
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.means import Means, compute
from mcheck.run.once import memory_of, once
from mcheck.run.single import model_of


def check_files(cases: Sequence[Case], settings: Settings, options: Options, means: Means) -> Iterator[Checked]:
    """The answers about ``cases``, in their order, as they come. An unreadable model raises before any file is read."""
    model_of(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Checked]:
        return compute(these, settings, means, task(options), lost, _preload)

    return once(cases, memory_of(means, "check", settings, **asdict(options)), fresh)


def _preload() -> None:
    """Imports what every file needs, so that forked workers have it already."""
    import mcheck.syntax  # noqa: F401 - imported for the workers
    from mcheck.policy.engines import preload

    preload("protocol")
