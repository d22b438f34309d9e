"""Edits of a program's text: insertions, replacements and moves of statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest

from mcheck.base.records import dataclass
from mcheck.checking.fences.outline import Gap, Outline, Statement


@dataclass(frozen=True, slots=True)
class Change:
    """The text from ``start`` to ``end`` becomes ``new``; ``inserted``: the statements of an insertion."""

    start: int
    end: int
    new: str
    inserted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One correction: changes that belong together, like the two ends of a move or a barrier in several roles.

    ``kind`` names the correction; repairs by another kind are alternatives. ``rank``: how likely it is to mend
    something, 0 the most. ``cost``: what it adds to the costs of the program's synchronisation.
    """

    changes: tuple[Change, ...]
    kind: str
    rank: int
    cost: float = 0.0

    @property
    def inserted(self) -> tuple[str, ...]:
        """The statements that are new."""
        if any(change.end > change.start for change in self.changes):
            return ()
        return tuple(line for change in self.changes for line in change.inserted)


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of a text, 1-based, whose contents ``old`` become ``new``; without ``old``, a line inserted before it."""

    line: int
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class LineReplacement:
    """The lines ``old`` of a text, from the 0-based line ``first`` on, become ``new``."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply_changes(text: str, changes: Iterable[Change]) -> str:
    """The text with these changes, which do not overlap."""
    for change in sorted(changes, key=lambda each: (each.start, each.end), reverse=True):
        text = text[: change.start] + change.new + text[change.end :]
    return text


def overlaps(changes: Sequence[Change]) -> bool:
    """Whether two of the changes touch the same characters."""
    ordered = sorted(changes, key=lambda each: (each.start, each.end))
    return any(one.end > other.start for one, other in pairwise(ordered))


def insert(program: Outline, gap: Gap, code: str) -> Change:
    """The insertion of statements at a gap, each in a line of its own if the gap is at the beginning of one."""
    lines = tuple(code.split("\n"))
    if not gap.alone:
        return Change(gap.at, gap.at, " ".join(lines) + " ", lines)
    begin = program.text.rfind("\n", 0, gap.at) + 1
    return Change(begin, begin, "".join(f"{gap.indent}{line}\n" for line in lines), lines)


def replace_statement(statement: Statement, instruction: str) -> Change:
    """The replacement of an instruction; its guard stays."""
    return Change(statement.start, statement.end, statement.guard + instruction)


def remove(program: Outline, start: int, end: int) -> Change:
    """The removal of a part of the text, with its line if nothing else is in it."""
    text = program.text
    begin = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    if not text[begin:start].strip() and after >= 0 and not text[end:after].strip():
        return Change(begin, after + 1, "")
    return Change(start, end + (text[end : end + 1] == " "), "")


def replaced_lines(before: str, after: str) -> Iterator[LineReplacement]:
    """The replacements of whole lines that make the one text of the other."""
    old, new = before.splitlines(), after.splitlines()
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield LineReplacement(first, tuple(old[first:last]), tuple(new[start:end]))


def changed_lines(before: str, after: str) -> Iterator[LineChange]:
    """What an editor has to do to the lines of the one text to get the other."""
    for each in replaced_lines(before, after):
        for number, (one, other) in enumerate(zip_longest(each.old, each.new)):
            line = min(each.first + number, each.first + len(each.old)) + 1
            yield LineChange(line, None if one is None else one.strip(), (other or "").strip())
