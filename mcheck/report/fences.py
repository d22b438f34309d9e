"""Reports of the synchronisation that a proof needs, and that it does not: as text and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from difflib import unified_diff

from mcheck import __version__
from mcheck.checking.fences.candidates import Edit
from mcheck.checking.fences.edits import LineChange, changed_lines
from mcheck.checking.fences.examination import Examined
from mcheck.checking.fences.instructions import opcode_of
from mcheck.checking.fences.removal import Removals, Tried
from mcheck.checking.fences.repairs import Repair, Repairs
from mcheck.report.checked import describe_filled_once, filled_once_entry


def document(examined: Sequence[Examined]) -> str:
    """The JSON document of these files."""
    results = [entry(each) for each in examined]
    return json.dumps({"schema": 1, "version": __version__, "results": results}, indent=2) + "\n"


def lines(examined: Examined) -> Iterator[str]:
    """The lines of text about one file."""
    yield f"{examined.path}: {examined.verdict}"
    if examined.result is not None and (note := describe_filled_once(examined.result)):
        yield f"  {note}"
    if examined.repairs is not None and examined.repairs.found:
        yield from _repairs(examined.text, examined.repairs)
        return
    if examined.removals is None:
        yield f"  not examined: {examined.reason}"
        return
    for each in examined.removals.removable:
        weaker = each.edit.replacement
        yield _of_candidate(each, "can go" if weaker is None else f"can be {_squeezed(weaker)}")
    for each in examined.removals.needed:
        weaker = each.edit.replacement
        needed = "is needed" if weaker is None else f"cannot be {_squeezed(weaker)}"
        yield _of_candidate(each, f"{needed}: {', '.join(each.codes)}")
    for each in examined.removals.undecided:
        weaker = each.edit.replacement
        stays = "without it" if weaker is None else f"as {_squeezed(weaker)}"
        yield _of_candidate(each, f"stays: {stays} the answer is {each.trial.verdict}")
    if examined.removals.together:
        cost, saved = examined.removals.cost, examined.removals.saved
        yield f"  together, at a cost of {cost - saved:g} instead of {cost:g}:" if saved > 0 else "  together:"
    for edits in _of_one_place(examined.removals.together):
        weaker = edits[0].replacement
        yield f"    {_said(edits, 'goes' if weaker is None else f'becomes {_squeezed(weaker)}')}"


def _of_candidate(tried: Tried, answer: str) -> str:
    """The instruction with its place, with the others that go or change with it, and the answer."""
    edit, others = tried.edit, tried.candidate.edits[1:]
    alike = [other for other in others if _kind(other) == _kind(edit)]
    beside = [f" with {_place(other)}: {_squeezed(other.instruction)}" for other in others if other not in alike]
    return f"  {_said((edit, *alike), answer, ''.join(beside))}"


def _said(edits: Sequence[Edit], answer: str, beside: str = "") -> str:
    """What is said of an instruction, at its lines or at the one of the source that all were compiled from."""
    numbers = ", ".join(str(each.line) for each in edits)
    instruction = _squeezed(edits[0].instruction)
    if not edits[0].source:
        return f"{numbers}: {instruction}{beside} {answer}"
    module = f"line{'s' * (len(edits) > 1)} {numbers} of the module"
    return f"{_place(edits[0])}: {instruction}{beside} {answer} ({module})"


def _of_one_place(edits: Sequence[Edit]) -> list[list[Edit]]:
    """Edits of instructions that were compiled from one place of the source together, in their order."""
    found: dict[object, list[Edit]] = {}
    for k, edit in enumerate(edits):
        key = (_kind(edit), edit.replacement is None) if edit.source else k
        found.setdefault(key, []).append(edit)
    return list(found.values())


def _kind(edit: Edit) -> tuple[object, str]:
    """What the copies that a compiler made of one instruction have in common: they differ in their registers."""
    return (edit.source, opcode_of(edit.instruction)) if edit.source else ((), _squeezed(edit.instruction))


def _place(edit: Edit) -> str:
    """The line of the source, its file as seen from the working directory if it is below; else that of the program."""
    if not edit.source:
        return str(edit.line)
    path = edit.source[-1].path
    here = os.path.relpath(path)
    return f"{path if here.startswith(os.pardir) else here}:{edit.source[-1].line}"


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _source(edit: Edit) -> str | None:
    """Where an instruction of a module was compiled from: the call of it that stands in the kernel."""
    return f"{edit.source[-1].path}:{edit.source[-1].line}" if edit.source else None


def entry(examined: Examined) -> dict[str, object]:
    """The entry of JSON for one file."""
    found = examined.removals or Removals((), (), (), ())
    return {
        "path": examined.path,
        "verdict": str(examined.verdict),
        "removable": [
            {**_edit_entry(each.edit), "needed_for": None} | _beside(each) | _proof(each) for each in found.removable
        ],
        "needed": [{**_edit_entry(each.edit), "without_it": list(each.codes)} | _beside(each) for each in found.needed],
        "undecided": [
            {**_edit_entry(each.edit), "verdict": str(each.trial.verdict)} | _beside(each) for each in found.undecided
        ],
        "together": [edit.line for edit in found.together],
        "changes": [_edit_entry(edit) for edit in found.together],
        "cost": found.cost,
        "saved": found.saved,
        "repairs": [_repair(examined.text, each) for each in examined.repairs.found] if examined.repairs else [],
        "reason": examined.reason,
        **(filled_once_entry(examined.result) if examined.result is not None else {}),
    }


def _edit_entry(edit: Edit) -> dict[str, object]:
    return {"line": edit.line, "instruction": edit.instruction, "replacement": edit.replacement}


def _proof(tried: Tried) -> dict[str, object]:
    """The lines of the fences without all of which the program is proved, if the edit was not checked alone."""
    return {"proved_with": [edit.line for edit in tried.proved_with]} if tried.proved_with else {}


def _beside(tried: Tried) -> dict[str, object]:
    """The edits that are made with the first one, and where the instruction was compiled from, if there are any."""
    others = [_edit_entry(edit) for edit in tried.candidate.edits[1:]]
    source = _source(tried.edit)
    return ({"with": others} if others else {}) | ({"source": source} if source else {})


def _repair(text: str, repair: Repair) -> dict[str, object]:
    found: dict[str, object] = {
        "edits": [_change(change) for change in changed_lines(text, repair.text)],
        "verdict": str(repair.verdict),
        "cost": repair.cost,
    }
    found |= {"findings": list(repair.reviews)} if repair.reviews else {}
    return found | ({"changes": list(repair.changes)} if repair.changes else {})


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
        yield f"  repair {number}: {count_edits(repair)}, cost {repair.cost:g}{left}"
        yield from (f"    not only the order changes: {change}" for change in repair.changes)
        yield from (f"    {line}" for line in difference(text, repair.text))


def count_edits(repair: Repair) -> str:
    """How many edits a repair takes."""
    return "1 edit" if len(repair.edits) == 1 else f"{len(repair.edits)} edits"


def difference(before: str, after: str) -> Iterator[str]:
    """A unified diff without the names of files, with one line around each change."""
    yield from (line for line in unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
