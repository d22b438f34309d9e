"""Selects the function that checks a file: PTX modules have their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mcheck.checking.check.case import Checked, Options, Settings
from mcheck.checking.check.files import is_module
from mcheck.checking.check.single import check_case
from mcheck.checking.run.case import Case


def select_task(options: Options) -> Callable[[Case, Settings], Checked]:
    """The function that checks one file with these options; it can be sent to other machines."""
    return partial(check_one, options=options)


def check_one(case: Case, settings: Settings, options: Options) -> Checked:
    """The result of checking one file; raises only ``KeyboardInterrupt``."""
    if is_module(case.path):
        from mcheck.checking.check.modules import check_file  # imports what reads modules, which tests never need

        return check_file(case, settings, options)
    return check_case(case, settings, options)
