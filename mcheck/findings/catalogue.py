"""All findings that mcheck can report: ``get(code)``, ``all()``, ``severity(code, profile)``.

Each code has a page of its own in ``pages/``, which ``mcheck.findings.page`` reads. Codes are stable: they may be
retired, never reused.
"""

from __future__ import annotations

import os
import re
from functools import cache

from mcheck.base.errors import InputError
from mcheck.findings.entry import PROFILES, Entry

__all__ = ["PROFILES", "Entry", "all", "codes", "get", "severity"]

_PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages")
_FAMILIES = ("RACE", "UB", "DEAD")
_CODE = re.compile(r"(RACE|UB|DEAD)(\d{3})")
_OF_INPUT = re.compile(r"(LIT|CAT|PTX)\d{3}")


@cache
def codes() -> tuple[str, ...]:
    """Every code, in the order of the documentation: races, undefined behaviour, deadlocks."""
    found = [form for name in os.listdir(_PAGES) if (form := _CODE.fullmatch(name.removesuffix(".md")))]
    return tuple(form[0] for form in sorted(found, key=lambda form: (_FAMILIES.index(form[1]), form[2])))


def all() -> tuple[Entry, ...]:  # noqa: A001 - reads as catalogue.all()
    """Every entry, in the order of the documentation."""
    return tuple(map(_read, codes()))


@cache
def _read(code: str) -> Entry:
    from mcheck.findings import page

    with open(os.path.join(_PAGES, f"{code}.md"), encoding="utf-8") as file:
        return page.entry(file.read(), code)


def get(code: str) -> Entry:
    """The entry of ``code`` in any case (``race001``); an unknown one is an ``InputError`` with a hint."""
    wanted = code.upper()
    if wanted in codes():
        return _read(wanted)

    from difflib import get_close_matches

    if _OF_INPUT.fullmatch(wanted):
        raise InputError(
            f"{code} is not a finding, but an error in what was read",
            hint="its message says what was expected, and where",
        )
    near = get_close_matches(wanted, codes(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "mcheck explain without a code lists all of them"
    raise InputError(f"unknown finding code {code!r}", hint=hint)


def severity(code: str, profile: str) -> str:
    """How grave ``code`` is under ``profile``: ``error``, ``review`` or ``advice``."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}", expected=", ".join(PROFILES))
    return get(code).severity(profile)
