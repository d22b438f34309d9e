"""Reports of the synchronisation that a proof needs, and that it does not: as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mcheck import __version__
from mcheck.checking.fences.examination import Examined
from mcheck.checking.fences.removal import Removals


def document(examined: Sequence[Examined]) -> str:
    """The JSON document of these files."""
    results = [_entry(each) for each in examined]
    return json.dumps({"schema": 1, "version": __version__, "results": results}, indent=2) + "\n"


def lines(examined: Examined) -> Iterator[str]:
    """The lines of text about one file."""
    yield f"{examined.path}: {examined.verdict}"
    if examined.removals is None:
        yield f"  not examined: {examined.reason}"
        return
    for each in examined.removals.removable:
        weaker = each.edit.replacement
        change = "can go" if weaker is None else f"can be {weaker}"
        yield f"  {each.edit.line}: {each.edit.instruction} {change}"
    for each in examined.removals.needed:
        if each.edit.replacement is None:
            yield f"  {each.edit.line}: {each.edit.instruction} is needed: {', '.join(each.codes)}"
    for each in examined.removals.undecided:
        if each.edit.replacement is None:
            yield f"  {each.edit.line}: {each.edit.instruction} stays: without it the answer is {each.result.verdict}"
    if examined.removals.together:
        yield "  together:"
    for edit in examined.removals.together:
        change = "goes" if edit.replacement is None else f"becomes {edit.replacement}"
        yield f"    {edit.line}: {edit.instruction} {change}"


def _entry(examined: Examined) -> dict[str, object]:
    found = examined.removals or Removals((), (), (), ())
    return {
        "path": examined.path,
        "verdict": str(examined.verdict),
        "removable": [
            {
                "line": each.edit.line,
                "instruction": each.edit.instruction,
                "replacement": each.edit.replacement,
                "needed_for": None,
            }
            for each in found.removable
        ],
        "needed": [
            {"line": each.edit.line, "instruction": each.edit.instruction, "without_it": list(each.codes)}
            for each in found.needed
            if each.edit.replacement is None
        ],
        "undecided": [
            {"line": each.edit.line, "instruction": each.edit.instruction, "verdict": str(each.result.verdict)}
            for each in found.undecided
            if each.edit.replacement is None
        ],
        "together": [edit.line for edit in found.together],
        "repairs": [],
        "reason": examined.reason,
    }
