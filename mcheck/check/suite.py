"""Many files: independent ones on several processes, answers in the order of the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.files import is_module, launch_beside
from mcheck.check.single import lost
from mcheck.check.task import task
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.means import Means, compute
from mcheck.run.once import Texts, memory_of, once, texts_of
from mcheck.run.single import model_of


def check_files(cases: Sequence[Case], settings: Settings, options: Options, means: Means) -> Iterator[Checked]:
    """The answers about ``cases``, in their order, as they come. An unreadable model raises before any file is read."""
    model_of(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Checked]:
        return compute(these, settings, means, task(options), lost, _preload)

    def texts(path: str) -> Texts:
        return texts_of_file(path, options)

    return once(cases, memory_of(means, Checked, "check", settings, texts, **asdict(options)), fresh)


def texts_of_file(path: str, options: Options) -> Texts:
    """What an answer about a file rests on: a test with what it includes, or a module and its launch."""
    return _of_module(path, options) if is_module(path) else texts_of(path)


def _of_module(path: str, options: Options) -> Texts:
    """A module and its launch; that of the options is a part of every key."""
    from mcheck.ptx import reading

    launch = None if options.launch is not None else launch_beside(path)
    others = () if launch is None else (launch.text or "",)
    return Texts(reading.text(path), os.path.basename(path), None, others, tells=True)


def _preload() -> None:
    """Imports what every file needs, so that forked workers have it already."""
    import mcheck.syntax  # noqa: F401 - imported for the workers
    from mcheck.policy.engines import preload

    preload("protocol")
