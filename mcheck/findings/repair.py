"""What a finding says is missing, carried out: ``Execute CODE after line N`` as a change of the text.

The remedies are sentences for people (``mcheck.engines.protocol.diagnosis.fixes``), worded so that they can be carried
out.
"""

from __future__ import annotations

import re

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding

_EXECUTE = re.compile(
    r"[Ee]xecute (?P<code>(?:fence|bar|cp\.async|wgmma|tcgen05)[\w.:]*(?:; [\w.]+)?"
    r"(?: (?:0x[0-9a-f]+|\d+|\[[^\]]*\], 128))?) (?P<where>after|before) line (?P<line>\d+)"
)
_GUARD = re.compile(r"(?:@!?%?[\w$]+\s+|\bawait\s+)$")


@dataclass(frozen=True, slots=True)
class Insertion:
    """``code`` (without its last semicolon) is to stand ``after`` or before the instruction in ``line``."""

    code: str
    after: bool
    line: int


@dataclass(frozen=True, slots=True)
class Edit:
    """``text`` goes in before the character at the 0-based ``column`` of the 1-based ``line``."""

    line: int
    column: int
    text: str


def insertions(finding: Finding) -> tuple[Insertion, ...]:
    """What is to be inserted; nothing where no instruction and place are named."""
    found = _EXECUTE.finditer(finding.missing)
    return tuple(Insertion(m["code"], m["where"] == "after", int(m["line"])) for m in found)


def edits(finding: Finding, lines: list[str], *, table: bool) -> tuple[Edit, ...]:
    """The changes of the text ``lines`` that carry out the finding's remedy. ``table``: a program in columns."""
    out = []
    for step in insertions(finding):
        if not 0 < step.line <= len(lines):
            return ()
        column = next((a.span.column - 1 for a in finding.accesses if a.span and a.span.line == step.line), None)
        edit = _in_a_table(step, lines, column) if table else _in_a_block(step, lines, column)
        if edit is None:
            return ()
        out.append(edit)
    return tuple(out)


def apply_edits(lines: list[str], changes: tuple[Edit, ...]) -> list[str]:
    """The lines after the changes."""
    text = list(lines)
    for edit in sorted(changes, key=lambda e: (-e.line, -e.column)):
        line = text[edit.line - 1]
        text[edit.line - 1] = line[: edit.column] + edit.text + line[edit.column :]
    return "\n".join(text).split("\n")


def _in_a_block(step: Insertion, lines: list[str], column: int | None) -> Edit:
    """Behind the statement's semicolon, or before the statement with its guard."""
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
    """A row of its own, in the column of the thread."""
    if column is None:
        return None
    row = lines[step.line - 1]
    cells = row.count("|", 0, column)
    text = f" {'| ' * cells}{step.code} {'| ' * (row.count('|') - cells)};"
    return Edit(step.line, len(row), f"\n{text}") if step.after else Edit(step.line, 0, f"{text}\n")
