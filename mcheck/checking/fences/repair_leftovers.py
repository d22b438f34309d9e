"""What a repair makes superfluous: a statement that does what one does which it inserts or moves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Edit, apply_changes, remove
from mcheck.checking.fences.outline import outline

_WRITTEN = re.compile(r"[\n{}]|(?<=;)")
_BARRIERS = ("bar.warp.sync", "bar.sync", "barrier.sync")
_NAME = re.compile(r"(?:await )?[\w.:]+")


def find_leftovers(edits: Sequence[Edit], text: str, costs: Costs) -> Iterator[Edit]:
    """Removals from the text that the edits have left, the dearest first."""
    program = outline(text)
    if program is None:
        return
    written = "\n".join(line for edit in edits for change in edit.changes for line in change.inserted)
    lines = [line for part in _WRITTEN.split(written) if (line := part.strip())]
    before = costs.of_program(program)
    found = []
    for statement in program.statements:
        if any(_stands_for(line, statement.instruction) for line in lines):
            changes = (remove(program, statement.start, statement.end),)
            after = outline(apply_changes(text, changes))
            if after is not None:
                saved = costs.of_program(after) - before + costs.edit.get("replace", 0)
                found.append(Edit(changes, "remove what is superfluous", 0, saved))
    yield from sorted((edit for edit in found if edit.cost < 0), key=lambda each: each.cost)


def _stands_for(written: str, other: str) -> bool:
    """Whether what is written does what the other instruction does, where it stands."""
    one, two = (found[0] if (found := _NAME.match(each)) else "" for each in (written, other))
    if one in _BARRIERS:
        return two in _BARRIERS[: _BARRIERS.index(one) + 1]
    if one.startswith(("await mbarrier", "fence")):
        return written == other
    return "_group" in one and two in (one, f"{one}.read")
