"""Checks many files, independent ones in several processes; results are in the order of the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mcheck.checking.backends import Backend, compute
from mcheck.checking.check.case import Checked, Options, Settings
from mcheck.checking.check.files import is_module, launch_beside
from mcheck.checking.check.single import crashed_check
from mcheck.checking.check.task import task
from mcheck.checking.result_cache import Texts, compute_uncached, memory_of, texts_of
from mcheck.checking.run.case import DEFAULT_MODEL, Case
from mcheck.checking.run.single import model_of


def check_files(cases: Sequence[Case], settings: Settings, options: Options, means: Backend) -> Iterator[Checked]:
    """The results for ``cases``, in their order, as they are ready.

    An unreadable model raises before any file is read.
    """
    model_of(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Checked]:
        return compute(these, settings, means, task(options), crashed_check, _preload)

    def texts(path: str) -> Texts:
        return texts_of_file(path, options)

    return compute_uncached(cases, memory_of(means, Checked, "check", settings, texts, **asdict(options)), fresh)


def texts_of_file(path: str, options: Options) -> Texts:
    """The texts that the result for a file depends on: a test with its includes, or a module and its launch."""
    return _of_module(path, options) if is_module(path) else texts_of(path)


def _of_module(path: str, options: Options) -> Texts:
    """The text of a module and of its launch file; a launch from the options is part of every key."""
    from mcheck.frontend.ptx import reader

    launch = None if options.launch is not None else launch_beside(path)
    others = () if launch is None else (launch.text or "",)
    return Texts(reader.text(path), os.path.basename(path), None, others, tells=True)


def _preload() -> None:
    """Imports what every file needs, before workers are forked."""
    import mcheck.frontend.litmus  # noqa: F401 - imported for the workers
    from mcheck.checking.policy.engines import preload

    preload("protocol")
