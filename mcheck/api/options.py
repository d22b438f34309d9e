"""What the options of functions may be, as the commands say of theirs."""

from __future__ import annotations

import math

from mcheck.base.errors import InputError
from mcheck.checking.policy.engines import ENGINES
from mcheck.findings.entry import PROFILES

CHOICES = {"engine": ("auto", *ENGINES, "both"), "profile": PROFILES}


def hold(*, timeout: float | None, unroll: int, **chosen: str) -> None:
    """Raises ``InputError`` for an option that no command would take: a limit in seconds, how often loops are unrolled,
    and those of ``CHOICES``.
    """
    for name, value in chosen.items():
        if value not in CHOICES[name]:
            raise InputError(f"{name} is {value!r}", expected=f"one of {', '.join(CHOICES[name])}")
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise InputError(f"timeout is {timeout!r}", expected="seconds, more than 0, or None")
    if unroll < 0:
        raise InputError(f"unroll is {unroll!r}", expected="a number from 0 on")
