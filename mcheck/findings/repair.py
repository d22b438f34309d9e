"""Quick fixes: the instructions that a fix inserts, or puts in the place of others, and the orders and numbers that it
gives to others, as edits of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcheck.base.phrase import Site
from mcheck.base.records import dataclass
from mcheck.findings.fix import Change, Fix, Insert, Point, Property, insertions

_WAIT = re.compile(r"[\w.]*wait_group[\w.]*\s+\d+(?=\s*[;|]|\s*$)")
_ORDERED = re.compile(r"[\w.:]*?(\.(?:relaxed|acquire|release|acq_rel)\.(?:cta|cluster|gpu|sys))\b")
_LAST_NUMBER = re.compile(r"[^;|]*,\s*(\d+)\s*(?=[;|]|$)")
_NUMBERS = frozenset((Property.COUNT, Property.BYTES, Property.PARITY))
"""What is changed that an instruction has as its last operand."""
_GUARD = re.compile(r"(?:@!?%?[\w$]+\s+|\bawait\s+)$")


@dataclass(frozen=True, slots=True)
class Edit:
    """An insertion of ``text`` before the character at the 0-based ``column`` of the 1-based ``line``, in place of
    ``length`` characters.
    """

    line: int
    column: int
    text: str
    length: int = 0


def whole_insertions(fixes: Iterable[Fix]) -> tuple[Insert, ...]:
    """The insertions of fixes that are nothing else; none if more is to do."""
    given = tuple(fixes)
    inserted = insertions(given)
    return inserted if len(inserted) == sum(len(fix.steps) for fix in given) else ()


def make_edits(fixes: Iterable[Fix], lines: list[str], *, table: bool = False, parts: bool = False) -> tuple[Edit, ...]:
    """The edits of the text ``lines`` that implement fixes; none if more is to do than to insert instructions, or to
    give others an order or a number, unless ``parts`` are wanted. ``table``: the program is a table.
    """
    given = tuple(fixes)
    if changed := _orders(given, lines) or _numbers(given, lines):
        return changed
    out = []
    make = _in_a_table if table else _in_a_block
    for step in (insertions if parts else whole_insertions)(given):
        if step.weak is not None and (stronger := _in_place_of(step.weak.site, step.codes[-1], lines)) is not None:
            out.append(stronger)
            continue
        for point in step.points:
            if not 0 < point.site.line <= len(lines):
                return ()
            out.append(make("; ".join(step.codes), point, lines))
    return tuple(out)


def apply_edits(lines: list[str], changes: tuple[Edit, ...]) -> list[str]:
    """Apply edits to lines of text."""
    text = list(lines)
    for edit in sorted(changes, key=lambda e: (-e.line, -e.column)):
        line = text[edit.line - 1]
        text[edit.line - 1] = line[: edit.column] + edit.text + line[edit.column + edit.length :]
    return "\n".join(text).split("\n")


def _orders(fixes: tuple[Fix, ...], lines: list[str]) -> tuple[Edit, ...]:
    """The edits that give operations the memory orders of fixes, instead of a fence beside them; none if some of the
    fixes are about more, or an operation does not spell its order.
    """
    changes = [change for fix in fixes for change in fix.others]
    if not all(fix.others for fix in fixes) or any(c.what is not Property.SEMANTICS for c in changes):
        return ()
    out = []
    for new, site in ((change.new, site) for change in changes for site in change.sites):
        found = _ORDERED.match(lines[site.line - 1], site.column - 1) if 0 < site.line <= len(lines) else None
        if found is None:
            return ()
        out.append(Edit(site.line, found.start(1), new, found.end(1) - found.start(1)))
    return tuple(out)


def _numbers(fixes: tuple[Fix, ...], lines: list[str]) -> tuple[Edit, ...]:
    """The edits that give instructions the numbers of fixes; none if these are about more, or an instruction does not
    spell its number.
    """
    out = []
    for step in (step for fix in fixes for step in fix.steps):
        if not isinstance(step, Change) or step.what not in _NUMBERS or not step.new.isdecimal():
            return ()
        for site in step.sites:
            found = _LAST_NUMBER.match(lines[site.line - 1], site.column - 1) if 0 < site.line <= len(lines) else None
            if found is None or found[1] != step.old:
                return ()
            out.append(Edit(site.line, found.start(1), step.new, len(step.old)))
    return tuple(dict.fromkeys(out))


def _in_place_of(wait: Site, code: str, lines: list[str]) -> Edit | None:
    """An edit that puts a stronger wait for groups in the place of the one that stands there as a number."""
    if not 0 < wait.line <= len(lines):
        return None
    found = _WAIT.match(lines[wait.line - 1], wait.column - 1)
    return Edit(wait.line, found.start(), code, found.end() - found.start()) if found is not None else None


def _in_a_block(code: str, point: Point, lines: list[str]) -> Edit:
    """An edit after the semicolon of the statement, or before the statement and its guard."""
    line, start = point.site.line, point.site.column - 1
    text = lines[line - 1]
    indent = text[: len(text) - len(text.lstrip())]
    if point.after:
        end = text.find(";", start)
        while end < 0 and line < len(lines):
            line += 1
            end = lines[line - 1].find(";")
        rest = lines[line - 1][end + 1 :]
        if not rest.strip() or rest.lstrip().startswith("//"):
            return Edit(line, len(lines[line - 1]), f"\n{indent}{code};")
        return Edit(line, end + 1, f" {code};")
    while (guard := _GUARD.search(text[:start])) is not None:
        start = guard.start()
    if text[:start].strip():
        return Edit(line, start, f"{code}; ")
    return Edit(line, 0, f"{indent}{code};\n")


def _in_a_table(code: str, point: Point, lines: list[str]) -> Edit:
    """An edit that adds a row with the code in the column of the thread."""
    line, row = point.site.line, lines[point.site.line - 1]
    cells = row.count("|", 0, point.site.column - 1)
    text = f" {'| ' * cells}{code} {'| ' * (row.count('|') - cells)};"
    return Edit(line, len(row), f"\n{text}") if point.after else Edit(line, 0, f"{text}\n")
