"""Minimisation of a failing program: threads, blocks, statements, objects and terms are dropped in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.draft import Draft, units

Shows = Callable[[Draft], bool]


def minimise(draft: Draft, shows: Shows, *, seconds: float = 60.0) -> Draft:
    """Minimise the program while ``shows`` holds, within the time limit."""
    until = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(draft):
            if time.monotonic() > until:
                return draft
            if shows(smaller):
                draft, changed = smaller, True
                break
    return draft


def _smaller(draft: Draft) -> Iterator[Draft]:
    """Programs with one thing less, large things first."""
    for k in range(len(draft.roles)):
        yield replace(draft, roles=draft.roles[:k] + draft.roles[k + 1 :])
    for k, role in enumerate(draft.roles):
        lines = role.lines
        for start, end in sorted(units(lines), key=lambda u: u[0] - u[1]):
            yield draft.with_lines(k, lines[:start] + lines[end:])
            if end - start > 1 and not any(line.startswith("} else") for line in lines[start:end]):
                yield draft.with_lines(k, lines[:start] + lines[start + 1 : end - 1] + lines[end:])
    for k in range(len(draft.objects)):
        yield replace(draft, objects=draft.objects[:k] + draft.objects[k + 1 :])
    if draft.condition:
        yield replace(draft, condition="", shown=())
    for k in range(len(draft.shown)):
        yield replace(draft, shown=draft.shown[:k] + draft.shown[k + 1 :])
    if draft.model not in ("", "ptx-9.0"):
        yield replace(draft, model="ptx-9.0")
