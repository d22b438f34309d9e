"""Repairs of a PTX module with findings, each checked.

Each edit is tried alone. If none mends the module, all insertions that its findings name are made together; if that
does, every one that is not needed is taken back, the dearest first.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Change, Edit, apply_changes, overlaps
from mcheck.checking.fences.module_candidates import find_module_candidates
from mcheck.checking.fences.repairs import ALTERNATIVES, OUT_OF_TIME, Check, Repair, Repairs, Step, repair_of
from mcheck.checking.run.result import Result


class _Over(Exception):
    """No time, or no trial, is left."""


def find_module_repairs(first: Result, text: str, check: Check, costs: Costs, trials: int) -> Repairs:
    """The repairs of a module, the cheapest first; ``first`` lists all of its findings."""
    search = _Search(text, check, trials)
    limit = None
    try:
        search.run(find_module_candidates(first.findings, text, costs))
    except _Over as over:
        limit = str(over)
    return Repairs(tuple(sorted(search.found, key=lambda each: (bool(each.reviews), each.cost))), search.used, limit)


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
        """First what findings name, each edit alone and then as many as are needed together; then all others."""
        likeliest = [edit for edit in edits if not edit.rank]
        self._try_alone(likeliest)
        kept = _compatible([edit for edit in likeliest if edit.inserted])
        if not self.found and len(kept) > 1:
            best = self._mending(kept)
            for edit in sorted(kept, key=lambda each: -each.cost) if best is not None else ():
                fewer = tuple(each for each in kept if each != edit)
                if fewer and (mended := self._mending(fewer)) is not None:
                    kept, best = fewer, mended
            self._keep(best)
        if not self.found:
            self._try_alone([edit for edit in edits if edit.rank])

    def _try_alone(self, edits: Sequence[Edit]) -> None:
        """Each edit by itself; once there is a repair, only those of other kinds with the rank of that one."""
        rank: int | None = None
        for edit in edits:
            other = all(edit.kind not in repair.kind for repair in self.found)
            if len(self.found) < ALTERNATIVES and other and (rank is None or edit.rank <= rank):
                self._keep(repair := self._mending((edit,)))
                rank = edit.rank if repair is not None else rank

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
