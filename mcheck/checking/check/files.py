"""The files to check: tests, and PTX modules with the launch file beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcheck.base.errors import InputError, McheckError
from mcheck.base.files import is_in_folder_of
from mcheck.checking.run.case import Case, LaunchText
from mcheck.checking.run.collect import collect_tests, is_test

MODULE_SUFFIX = ".ptx"
SOURCE_SUFFIX = ".cu"
LAUNCH_SUFFIXES = (".json", ".launch.json", ".launch.toml")
SHOWN = 3
"""The maximum number of modules in a message."""


def is_module(path: str) -> bool:
    """Whether a file is a PTX module, by its name."""
    return path.lower().endswith(MODULE_SUFFIX)


def is_source(path: str) -> bool:
    """Whether a file is a source in CUDA C++, by its name."""
    return path.lower().endswith(SOURCE_SUFFIX)


def launch_file(module: str) -> str | None:
    """The path of the launch file of a module or source: the same name, ending in ``.json`` or ``.launch.json``."""
    paths = [os.path.splitext(module)[0] + suffix for suffix in LAUNCH_SUFFIXES]
    return next((path for path in paths if os.path.isfile(path)), None)


def read_launch_beside(module: str) -> LaunchText | None:
    """The launch in the file beside a module; raises ``InputError`` if that cannot be read."""
    from mcheck.frontend.litmus.source import read_source

    path = launch_file(module)
    if path is not None and not is_in_folder_of(path, module):
        said = f"{path} is a link to a file in another folder; the launch file must be in the folder of the module"
        raise InputError(said, hint="--launch FILE.json names one anywhere")
    return None if path is None else LaunchText(text=read_source(path), path=path)


def collect_files(paths: Sequence[str], *, launched: bool = False) -> tuple[list[Case], list[str]]:
    """The files under ``paths``, and the modules and sources in folders that are skipped for lack of a launch file.

    ``launched``: a launch was given for the modules that are named, so modules in folders are not collected.
    """
    bare: list[str] = []

    def takes(file: str) -> bool:
        if is_test(file):
            return True
        if launched or not (is_module(file) or is_source(file)):
            return False
        if launch_file(file) is None:
            bare.append(file)
            return False
        return True

    try:
        return collect_tests(paths, takes=takes), sorted(bare)
    except InputError as error:
        if bare:
            said = f"{error.message}, and {explain_skipped_modules(sorted(bare))}"
            raise InputError(said, hint=hint_for_skipped(bare)) from None
        raise


def hint_for_skipped(bare: Sequence[str]) -> str | None:
    """What to do about sources that are skipped; ``None`` if all are modules."""
    source = next((path for path in sorted(bare) if is_source(path)), None)
    if source is None:
        return None
    every = os.path.join(os.path.dirname(source), f"*{os.path.splitext(source)[1]}")
    return f"name sources themselves ({every}), and the main() of each is run to see what it launches"


def explain_skipped_modules(bare: Sequence[str]) -> str:
    """The message about modules that are skipped."""
    more = f" and {len(bare) - SHOWN} more" if len(bare) > SHOWN else ""
    return f"no launch file beside {', '.join(bare[:SHOWN])}{more}"


def has_any_constant(case: Case) -> bool:
    """Whether a test has a ``const N = any``, which only ``mcheck check`` supports."""
    from mcheck.checking.run.single import load_program

    try:
        return load_program(case.path, (), case.text, every=True).parameter is not None
    except McheckError:
        return False
