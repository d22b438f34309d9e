"""Repairs of a PTX module with findings: what the fixes of its findings name, and waits for more groups, each checked.

Each finding that names instructions and lines gives one edit, and each wait for groups one with fewer pending. Each is
tried alone. If none mends the module, all insertions are made together; if that does, every edit that is not needed is
taken back, the dearest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Change, Edit, apply_changes, overlaps
from mcheck.checking.fences.repairs import ALTERNATIVES, OUT_OF_TIME, Check, Repair, Repairs, Step, repair_of
from mcheck.checking.run.result import Result
from mcheck.findings.finding import Finding
from mcheck.findings.repair import make_edits, parse_fix

_PENDING = re.compile(r"\b((?:cp\.async(?:\.bulk)?|wgmma)\.wait_group[\w.]*)\s+(\d+)\s*;")


class _Over(Exception):
    """No time, or no trial, is left."""


def find_module_repairs(first: Result, text: str, check: Check, costs: Costs, trials: int) -> Repairs:
    """The repairs of a module, the cheapest first; ``first`` lists all of its findings."""
    search = _Search(text, check, trials)
    limit = None
    try:
        search.run(_edits_of(first, text, costs))
    except _Over as over:
        limit = str(over)
    return Repairs(tuple(sorted(search.found, key=lambda each: (bool(each.reviews), each.cost))), search.used, limit)


def _edits_of(result: Result, text: str, costs: Costs) -> tuple[Edit, ...]:
    """The insertions that the fixes of the findings name, the cheapest first."""
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    found = (edit for finding in result.findings if (edit := _edit_of(finding, lines, starts, costs)) is not None)
    by_changes = {edit.changes: edit for edit in found if not overlaps(edit.changes)}
    return (*sorted(by_changes.values(), key=lambda each: each.cost), *_waits(text, costs))


def _waits(text: str, costs: Costs) -> Iterator[Edit]:
    """Fewer groups that may be pending at a wait: a compiler makes several of one, so all of a kind change together."""
    places: dict[tuple[str, int], list[re.Match[str]]] = {}
    for found in _PENDING.finditer(text):
        places.setdefault((found[1], int(found[2])), []).append(found)
    for (_, pending), waits in places.items():
        for fewer in dict.fromkeys((pending - 1, 0)) if pending else ():
            changes = tuple(Change(*each.span(2), str(fewer)) for each in waits)
            yield Edit(changes, "pending groups", 1, costs.edit.get("replace", 0) * len(changes))


def _edit_of(finding: Finding, lines: list[str], starts: list[int], costs: Costs) -> Edit | None:
    insertions = make_edits(finding, lines, table=False)
    codes = [part.strip() for step in parse_fix(finding) for part in step.code.split(";")]
    places = (starts[each.line - 1] + each.column for each in insertions)
    changes = tuple(
        Change(at, at, each.text, (each.text.strip(),)) for each, at in zip(insertions, places, strict=True)
    )
    cost = sum(costs.of(f"{code};") + costs.edit.get("insert", 0) for code in codes)
    return Edit(changes, f"insert {' and '.join(dict.fromkeys(codes))}", 0, cost) if changes else None


def _compatible(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits that do not touch the same place otherwise, and insert nothing twice in it."""
    chosen: tuple[Edit, ...] = ()
    taken: set[Change] = set()
    for edit in edits:
        changes = [*taken, *edit.changes]
        if not taken & set(edit.changes) and not overlaps(changes):
            chosen, taken = (*chosen, edit), set(changes)
    return chosen


class _Search:
    """The trials of one module."""

    def __init__(self, text: str, check: Check, trials: int) -> None:
        self.text = text
        self.check = check
        self.trials = trials
        self.used = 0
        self.found: list[Repair] = []

    def run(self, edits: Sequence[Edit]) -> None:
        """Each edit alone, then as many as are needed together."""
        for edit in edits:
            if len(self.found) < ALTERNATIVES and all(edit.kind not in repair.kind for repair in self.found):
                self._keep(self._mending((edit,)))
        kept = _compatible([edit for edit in edits if edit.inserted])
        if not self.found and len(kept) > 1:
            best = self._mending(kept)
            for edit in sorted(kept, key=lambda each: -each.cost) if best is not None else ():
                fewer = tuple(each for each in kept if each != edit)
                if fewer and (mended := self._mending(fewer)) is not None:
                    kept, best = fewer, mended
            self._keep(best)

    def _keep(self, repair: Repair | None) -> None:
        self.found += [] if repair is None else [repair]

    def _mending(self, edits: tuple[Edit, ...]) -> Repair | None:
        """The repair by these edits, if it is one."""
        if self.used >= self.trials:
            raise _Over(f"--trials {self.trials} left others out")
        changed = apply_changes(self.text, (change for edit in edits for change in edit.changes))
        result = self.check(changed)
        if result is None:
            raise _Over(OUT_OF_TIME)
        self.used += 1
        return repair_of(tuple(Step(edit, self.text) for edit in edits), changed, result)
