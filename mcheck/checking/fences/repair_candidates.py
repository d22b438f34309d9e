"""Candidates for the repair of a program with findings: all edits that are tried, the likeliest first."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.records import replace
from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Edit, apply_changes, overlaps
from mcheck.checking.fences.finding_facts import collect_facts
from mcheck.checking.fences.outline import Outline, outline
from mcheck.checking.fences.repair_handovers import propose_handovers
from mcheck.checking.fences.repair_insertions import propose_insertions
from mcheck.checking.fences.repair_moves import ACROSS, propose_moves
from mcheck.checking.fences.repair_replacements import propose_replacements
from mcheck.findings.finding import Finding

SIZES = frozenset(("constant", "bounds of a loop", "coordinate", "address", "phase bit"))
"""Kinds of edits that may change what the kernel computes: they are tried where nothing else mends it."""


def find_candidates(program: Outline, findings: Sequence[Finding], costs: Costs) -> tuple[Edit, ...]:
    """Edits with different results, by rank and then by cost."""
    facts = collect_facts(findings)
    before = costs.of_program(program)
    seen = {program.text}
    edits = [
        edit
        for propose in (propose_insertions, propose_replacements, propose_moves, propose_handovers)
        for edit in propose(program, facts)
        if not overlaps(edit.changes)
    ]
    found = []
    for edit in sorted(edits, key=lambda each: each.rank):
        changed = apply_changes(program.text, edit.changes)
        after = outline(changed)
        if changed not in seen and after is not None:
            seen.add(changed)
            found.append(replace(edit, cost=costs.of_program(after) - before + _effort(edit, costs)))
    return tuple(sorted(found, key=lambda each: (each.rank, each.cost)))


def _effort(edit: Edit, costs: Costs) -> float:
    """What an edit costs whatever it inserts."""
    if edit.kind in SIZES:
        return costs.edit.get("size", 0)
    if edit.kind in ("move", ACROSS):
        moved = [line for change in edit.changes for line in change.inserted] if edit.kind == ACROSS else []
        return costs.edit.get("move", 0) * (1 + len(moved)) + sum(costs.of(line) for line in moved)
    kind = "insert" if edit.inserted else "replace"
    return costs.edit.get(kind, 0) * len(edit.changes)
