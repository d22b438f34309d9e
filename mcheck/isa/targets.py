"""Target architectures: ``sm_90``, architecture-specific ``sm_90a``, family-specific ``sm_100f`` (PTX ISA 11.1.2).

A requirement is a tuple of alternatives: ``sm_90`` is met by that number or a higher one, ``sm_90a`` only by itself,
``sm_100f`` by that member or a higher one of the same family with an ``f`` or ``a`` suffix.
"""

from __future__ import annotations

import re
from functools import cache

from mcheck.base.errors import InputError, Span

_TARGET = re.compile(r"sm_(\d+)([af]?)")

KNOWN = (
    "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a",
    "sm_100", "sm_100f", "sm_100a", "sm_101", "sm_101f", "sm_101a", "sm_103", "sm_103f", "sm_103a",
    "sm_107", "sm_107f", "sm_107a", "sm_110", "sm_110f", "sm_110a", "sm_120", "sm_120f", "sm_120a",
    "sm_121", "sm_121f", "sm_121a",
)  # fmt: skip
"""The targets on which the memory model applies (sm_70 and later)."""


@cache
def split(target: str) -> tuple[int, str]:
    """``sm_100a`` as (100, "a"); raises ``InputError`` for anything else."""
    match = _TARGET.fullmatch(target)
    if match is None:
        raise InputError(f"'{target}' is not a target", expected="sm_NN, sm_NNa or sm_NNf")
    return int(match[1]), match[2]


def check_target(target: str, span: Span | None = None) -> None:
    """Raise ``InputError`` unless ``target`` is one of ``KNOWN``."""
    if target not in KNOWN:
        import difflib

        near = difflib.get_close_matches(target, KNOWN, n=1)
        hint = f"did you mean {near[0]}?" if near else None
        raise InputError(f"unknown target '{target}'", span, expected=", ".join(KNOWN), hint=hint, section="11.1.2")


@cache
def meets_target(target: str, needs: tuple[str, ...]) -> bool:
    """Does ``target`` meet one of the alternatives of ``needs`` (none: every target does)?"""
    return not needs or any(_meets_one(target, need) for need in needs)


def _meets_one(target: str, need: str) -> bool:
    have, have_suffix = split(target)
    want, want_suffix = split(need)
    if want_suffix == "a":
        return have == want and have_suffix == "a"
    if want_suffix == "f":
        return have // 10 == want // 10 and have >= want and have_suffix != ""
    return have >= want


def describe(needs: tuple[str, ...]) -> str:
    """``sm_90 or higher``; ``sm_100a, sm_110f or a later one of its family``."""
    words = []
    for need in needs:
        suffix = split(need)[1]
        words.append(need + {"": " or higher", "f": " (or later in its family)", "a": ""}[suffix])
    return " or ".join(words)
