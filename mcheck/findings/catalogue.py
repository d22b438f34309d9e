"""All findings that mcheck can report: ``get(code)``, ``all()``, ``severity(code, profile)``.

The entries stand in one file per subject. Their codes are stable: they may be retired, never reused.
"""

from __future__ import annotations

import re
from functools import cache

from mcheck.errors import InputError
from mcheck.findings.entry import PROFILES, Entry

__all__ = ["PROFILES", "Entry", "all", "get", "severity"]


@cache
def _entries() -> dict[str, Entry]:
    from mcheck.findings import (
        barriers,
        deadlocks,
        grids,
        mbarriers,
        operands,
        phases,
        races,
        registers,
        tensor_memory,
        tensors,
    )

    groups = (races, grids, operands, mbarriers, phases, barriers, tensors, tensor_memory, registers, deadlocks)
    return {entry.code: entry for group in groups for entry in group.ENTRIES}


def all() -> tuple[Entry, ...]:  # noqa: A001 - reads as catalogue.all()
    """Every entry, in the order of the documentation."""
    return tuple(_entries().values())


_OF_INPUT = re.compile(r"(LIT|CAT|PTX)\d{3}")


def get(code: str) -> Entry:
    """The entry of ``code`` in any case (``race001``); an unknown one is an ``InputError`` with a hint."""
    entry = _entries().get(code.upper())
    if entry is None:
        from difflib import get_close_matches

        if _OF_INPUT.fullmatch(code.upper()):
            raise InputError(
                f"{code} is no finding, but an error in what was read",
                hint="its message says what was expected, and where",
            )
        near = get_close_matches(code.upper(), _entries(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "mcheck explain without a code lists all of them"
        raise InputError(f"unknown finding code {code!r}", hint=hint)
    return entry


def severity(code: str, profile: str) -> str:
    """How grave ``code`` is under ``profile``: ``error``, ``review`` or ``advice``."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}", expected=", ".join(PROFILES))
    return get(code).severity(profile)
