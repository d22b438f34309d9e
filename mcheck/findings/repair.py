"""Quick fixes: the fix ``Execute CODE after line N`` of a finding, or ``before line M and after line N``, as edits of
the text.

The fixes are sentences for people (``mcheck.answers.advice``) in a form that can be parsed here.
"""

from __future__ import annotations

import re

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding

_PLACE = re.compile(r"(?P<where>after|before) line (?P<line>\d+)")
_ONE = r"(?:after|before) line \d+"
_EXECUTE = re.compile(
    r"[Ee]xecute (?P<code>(?:fence|bar|cp\.async|wgmma|tcgen05)[\w.:]*(?:; [\w.]+)?"
    rf"(?: (?:0x[0-9a-f]+|\d+|\[[^\]]*\], 128))?) (?P<places>{_ONE}(?:(?:, {_ONE})* and {_ONE})?)"
)
"""``after line 1, before line 2`` is one place, between the two; more places are joined by ``and``."""
_GUARD = re.compile(r"(?:@!?%?[\w$]+\s+|\bawait\s+)$")


@dataclass(frozen=True, slots=True)
class Insertion:
    """An insertion of ``code``, without its last semicolon, ``after`` or before the instruction at ``line``."""

    code: str
    after: bool
    line: int


@dataclass(frozen=True, slots=True)
class Edit:
    """An insertion of ``text`` before the character at the 0-based ``column`` of the 1-based ``line``, in place of
    ``length`` characters.
    """

    line: int
    column: int
    text: str
    length: int = 0


def parse_fix(finding: Finding) -> tuple[Insertion, ...]:
    """The insertions that the fix names; none if it names no instruction and line."""
    return tuple(
        Insertion(step["code"], place["where"] == "after", int(place["line"]))
        for step in _EXECUTE.finditer(finding.missing)
        for place in _PLACE.finditer(step["places"])
    )


def make_edits(finding: Finding, lines: list[str], *, table: bool) -> tuple[Edit, ...]:
    """The edits of the text ``lines`` that implement the fix of a finding. ``table``: the program is a table."""
    out = []
    for step in parse_fix(finding):
        if not 0 < step.line <= len(lines):
            return ()
        column = next((a.span.column - 1 for a in finding.accesses if a.span and a.span.line == step.line), None)
        edit = _in_a_table(step, lines, column) if table else _in_a_block(step, lines, column)
        if edit is None:
            return ()
        out.append(edit)
    return tuple(out)


def apply_edits(lines: list[str], changes: tuple[Edit, ...]) -> list[str]:
    """Apply edits to lines of text."""
    text = list(lines)
    for edit in sorted(changes, key=lambda e: (-e.line, -e.column)):
        line = text[edit.line - 1]
        text[edit.line - 1] = line[: edit.column] + edit.text + line[edit.column + edit.length :]
    return "\n".join(text).split("\n")


def _in_a_block(step: Insertion, lines: list[str], column: int | None) -> Edit:
    """An edit after the semicolon of the statement, or before the statement and its guard."""
    text = lines[step.line - 1]
    start = column if column is not None else len(text) - len(text.lstrip())
    indent = text[: len(text) - len(text.lstrip())]
    if step.after:
        line = step.line
        end = text.find(";", start)
        while end < 0 and line < len(lines):
            line += 1
            end = lines[line - 1].find(";")
        rest = lines[line - 1][end + 1 :]
        if not rest.strip() or rest.lstrip().startswith("//"):
            return Edit(line, len(lines[line - 1]), f"\n{indent}{step.code};")
        return Edit(line, end + 1, f" {step.code};")
    while (guard := _GUARD.search(text[:start])) is not None:
        start = guard.start()
    if text[:start].strip():
        return Edit(step.line, start, f"{step.code}; ")
    return Edit(step.line, 0, f"{indent}{step.code};\n")


def _in_a_table(step: Insertion, lines: list[str], column: int | None) -> Edit | None:
    """An edit that adds a row with the code in the column of the thread."""
    if column is None:
        return None
    row = lines[step.line - 1]
    cells = row.count("|", 0, column)
    text = f" {'| ' * cells}{step.code} {'| ' * (row.count('|') - cells)};"
    return Edit(step.line, len(row), f"\n{text}") if step.after else Edit(step.line, 0, f"{text}\n")
