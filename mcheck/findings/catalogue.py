"""The catalogue of findings: ``get(code)``, ``all()``, ``severity(code, profile)``.

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
    """All codes, in the order of the documentation: races, undefined behaviour, deadlocks."""
    found = [form for name in os.listdir(_PAGES) if (form := _CODE.fullmatch(name.removesuffix(".md")))]
    return tuple(form[0] for form in sorted(found, key=lambda form: (_FAMILIES.index(form[1]), form[2])))


def all() -> tuple[Entry, ...]:  # noqa: A001 - reads as catalogue.all()
    """All entries, in the order of the documentation."""
    return tuple(map(_read, codes()))


@cache
def _read(code: str) -> Entry:
    from mcheck.findings import page

    with open(os.path.join(_PAGES, f"{code}.md"), encoding="utf-8") as file:
        return page.parse_page(file.read(), code)


def get(code: str) -> Entry:
    """The entry of ``code`` in any case (``race001``); raises ``InputError`` for an unknown code."""
    wanted = code.upper()
    if wanted in codes():
        return _read(wanted)

    from difflib import get_close_matches

    if _OF_INPUT.fullmatch(wanted):
        raise InputError(
            f"{code} is the code of an input error, not of a finding",
            hint="the message of the error says what was expected, and where",
        )
    near = get_close_matches(wanted, codes(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "mcheck explain without a code lists all codes"
    raise InputError(f"unknown finding code {code!r}", hint=hint)


def severity(code: str, profile: str) -> str:
    """The severity of ``code`` under ``profile``: ``error``, ``review`` or ``advice``."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}", expected=", ".join(PROFILES))
    return get(code).severity(profile)
