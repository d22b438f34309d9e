"""``mcheck check`` for many files: the task for each, and what its result depends on."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial

from mcheck.base.reasons import Reason
from mcheck.base.records import replace
from mcheck.checking.check.files import is_module, read_launch_beside
from mcheck.checking.check.inquiry import FindingsInquiry
from mcheck.checking.policy.question import Completeness
from mcheck.checking.result_cache import Texts, read_texts
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import answer_case, crashed_result
from mcheck.checking.suite import Command


def check_command(options: Options) -> Command:
    """The command with these options; it can be sent to other machines."""
    return Command(
        name="check",
        task=partial(check_case, options=options),
        lost=crashed_check,
        preload=preload,
        texts=partial(read_file_texts, options=options),
        options=asdict(replace(options, launches=())),  # of each file its own is part of the key
    )


def check_case(case: Case, settings: Settings, options: Options) -> Result:
    """The result of checking one file; raises only ``KeyboardInterrupt``."""
    if is_module(case.path):
        from mcheck.checking.check.modules import ModuleInquiry  # imports what reads modules, which tests never need

        return answer_case(case, settings, ModuleInquiry(options))
    return answer_case(case, settings, FindingsInquiry(options))


def crashed_check(case: Case, settings: Settings, reason: Reason, seconds: float) -> Result:
    """The result for a file whose process was stopped or died."""
    return crashed_result(case, settings, reason, seconds, Completeness.FINDINGS)


def preload(_: Settings) -> None:
    """Imports what every file needs, before workers are forked."""
    import mcheck.frontend.litmus  # noqa: F401 - imported for the workers
    from mcheck.checking.policy.engines import preload

    preload("protocol")


def read_file_texts(case: Case, options: Options) -> Texts:
    """The texts that the result for a file depends on: a test with its includes, or a module and its launch."""
    return _of_module(case, options) if is_module(case.path) else read_texts(case)


def _of_module(case: Case, options: Options) -> Texts:
    """The text of a module and of its launch file; a launch from the options is part of every key."""
    from mcheck.checking.check.module_models import model_of_text
    from mcheck.frontend.ptx import reader

    path = case.path
    launch = None if options.launch is not None else options.launch_of(path) or read_launch_beside(path)
    others = () if launch is None else (launch.text or "",)
    text = reader.read_text(path) if case.text is None else case.text
    return Texts(text, os.path.basename(path), model_of_text(text), others, names_other_files=True)
