"""Reports of the synchronisation that a proof needs, and that it does not: as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff

from mcheck import __version__
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences.edits import LineChange, changed_lines
from mcheck.checking.fences.examination import Examined
from mcheck.checking.fences.removal import Removals
from mcheck.checking.fences.repairs import Repair, Repairs


def document(examined: Sequence[Examined]) -> str:
    """The JSON document of these files."""
    results = [entry(each) for each in examined]
    return json.dumps({"schema": 1, "version": __version__, "results": results}, indent=2) + "\n"


def lines(examined: Examined) -> Iterator[str]:
    """The lines of text about one file."""
    yield f"{examined.path}: {examined.verdict}"
    if examined.repairs is not None and examined.repairs.found:
        yield from _repairs(examined.text, examined.repairs)
        return
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


def entry(examined: Examined) -> dict[str, object]:
    """The entry of JSON for one file."""
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
        "repairs": [_repair(examined.text, each) for each in examined.repairs.found] if examined.repairs else [],
        "reason": examined.reason,
    }


def _repair(text: str, repair: Repair) -> dict[str, object]:
    found: dict[str, object] = {
        "edits": [_change(change) for change in changed_lines(text, repair.text)],
        "verdict": str(Verdict.PROVED),
        "cost": repair.cost,
    }
    return found | ({"findings": list(repair.reviews)} if repair.reviews else {})


def _change(change: LineChange) -> dict[str, object]:
    if change.old is None:
        return {"line": change.line, "insert": change.new}
    return {"line": change.line, "replace": change.new, "instruction": change.old}


def _repairs(text: str, repairs: Repairs) -> Iterator[str]:
    """Each repair with its edits, the first as a diff."""
    programs = f"{repairs.trials} changed programs were checked"
    yield f"  {len(repairs.found)} repair{'s' * (len(repairs.found) != 1)} found, each proved; {programs}"
    for number, repair in enumerate(repairs.found, 1):
        left = f", with {', '.join(repair.reviews)} for review" if repair.reviews else ""
        yield f"  repair {number}: {_edits(repair)}, cost {repair.cost:g}{left}"
        yield from (f"    {line}" for line in difference(text, repair.text))


def _edits(repair: Repair) -> str:
    return "1 edit" if len(repair.edits) == 1 else f"{len(repair.edits)} edits"


def difference(before: str, after: str) -> Iterator[str]:
    """A unified diff without the names of files, with one line around each change."""
    yield from (line for line in unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
