"""Checks many files, independent ones in several processes; results are in the order of the files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from mcheck.checking.backends import Backend, compute_cases
from mcheck.checking.check.case import Checked, Options, Settings
from mcheck.checking.check.files import is_module, read_launch_beside
from mcheck.checking.check.single import crashed_check
from mcheck.checking.check.task import select_task
from mcheck.checking.result_cache import Texts, compute_uncached, open_result_cache, read_texts
from mcheck.checking.run.case import DEFAULT_MODEL, Case
from mcheck.checking.run.single import load_model


def check_files(cases: Sequence[Case], settings: Settings, options: Options, means: Backend) -> Iterator[Checked]:
    """The results for ``cases``, in their order, as they are ready.

    An unreadable model raises before any file is read.
    """
    load_model(settings.model or DEFAULT_MODEL)

    def fresh(these: Sequence[Case]) -> Iterator[Checked]:
        return compute_cases(these, settings, means, select_task(options), crashed_check, _preload)

    def texts(path: str) -> Texts:
        return read_file_texts(path, options)

    return compute_uncached(
        cases, open_result_cache(means, Checked, "check", settings, texts, **asdict(options)), fresh
    )


def read_file_texts(path: str, options: Options) -> Texts:
    """The texts that the result for a file depends on: a test with its includes, or a module and its launch."""
    return _of_module(path, options) if is_module(path) else read_texts(path)


def _of_module(path: str, options: Options) -> Texts:
    """The text of a module and of its launch file; a launch from the options is part of every key."""
    from mcheck.frontend.ptx import reader

    launch = None if options.launch is not None else read_launch_beside(path)
    others = () if launch is None else (launch.text or "",)
    return Texts(reader.read_text(path), os.path.basename(path), None, others, names_other_files=True)


def _preload() -> None:
    """Imports what every file needs, before workers are forked."""
    import mcheck.frontend.litmus  # noqa: F401 - imported for the workers
    from mcheck.checking.policy.engines import preload

    preload("protocol")
