"""Which function checks a file: modules have one of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mcheck.checking.check.case import Checked, Options, Settings
from mcheck.checking.check.files import is_module
from mcheck.checking.check.single import check_case
from mcheck.checking.run.case import Case


def task(options: Options) -> Callable[[Case, Settings], Checked]:
    """The function that checks one file with these options; other machines can be told of it."""
    return partial(check_one, options=options)


def check_one(case: Case, settings: Settings, options: Options) -> Checked:
    """The answer about one file; raises nothing but ``KeyboardInterrupt``."""
    if is_module(case.path):
        from mcheck.checking.check.modules import check_file  # imports what reads modules, which tests never need

        return check_file(case, settings, options)
    return check_case(case, settings, options)
