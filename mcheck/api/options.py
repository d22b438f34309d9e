"""Validation of the options of the API functions, as the command line validates its own."""

from __future__ import annotations

import math

from mcheck.base.errors import InputError
from mcheck.checking.policy.engines import ENGINES
from mcheck.findings.entry import PROFILES

CHOICES = {"engine": ("auto", *ENGINES, "both"), "profile": PROFILES}


def validate_options(*, timeout: float | None, unroll: int, **chosen: str) -> None:
    """Raise ``InputError`` for an invalid time limit, number of unrollings or choice among ``CHOICES``."""
    for name, value in chosen.items():
        if value not in CHOICES[name]:
            raise InputError(f"invalid {name} {value!r}", expected=f"one of {', '.join(CHOICES[name])}")
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise InputError(f"invalid timeout {timeout!r}", expected="a positive number of seconds, or None")
    if unroll < 0:
        raise InputError(f"invalid unroll {unroll!r}", expected="a number of at least 0")
