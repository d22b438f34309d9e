"""The location of the shipped litmus suites: in the wheel, or at the root of a checkout."""

from __future__ import annotations

import os

from mcheck.base.errors import InputError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def litmus() -> str:
    """The folder of the shipped suites."""
    for candidate in (os.path.join(_PACKAGE, "_data", "litmus"), os.path.join(os.path.dirname(_PACKAGE), "litmus")):
        if os.path.isdir(candidate):
            return candidate
    raise InputError("the suites that come with mcheck are not installed")
