"""Fixes of compiled modules as edits of the source: the language's own word on a line of its own, or inline PTX where a
source in CUDA C++ lacks the header of the word.

A fix inserts instructions at statements of the module. Where these were compiled from lines of CUDA C++ or Python
before or after which a statement can stand, and the language has a word for the instruction, there is an edit. Whether
it compiles, and helps, is for a check to say.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.checking.fences.edits import replaced_lines
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Point
from mcheck.findings.repair import Edit, whole_insertions
from mcheck.report.fix_places import places_to_write
from mcheck.report.language_words import find_word, is_declared, language_of
from mcheck.report.source_text import depth_of

_COMMENT = re.compile(r"//.*|/\*.*?\*/|#.*")
_C_ENDS = (";", "{", "}")
_PYTHON_OPEN = re.compile(r"[(\[{,\\]$")


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """An insertion of ``text`` before the character at the 0-based ``column`` of the 1-based ``line`` of ``path``, in
    place of the text ``replaces``.
    """

    path: str
    line: int
    column: int
    text: str
    replaces: str = ""


def find_source_edits(finding: Finding, texts: SourceText) -> tuple[SourceEdit, ...]:
    """The edits of the source that implement the fix of a finding; none if one of its steps has none."""
    language = language_of(finding, texts)
    steps = whole_insertions(finding.fixes)
    if not language or not steps:
        return ()
    depth = depth_of([access.source for access in finding.accesses], texts)
    places = {one.line: depth.place(one.source, texts) for one in finding.lines} | places_to_write(finding, texts)
    edits: list[SourceEdit | None] = []
    for step in steps:
        weak = step.weak
        if weak is not None and (place := places.get(weak.site.line)) is not None:
            stronger = _in_place_of(step.codes[-1], weak.pending, place, language, texts)
            if stronger is not None:
                edits.append(stronger)
                continue
        edits += [_edit(step.codes, place, places.get(place.site.line), language, texts) for place in step.points]
    return tuple(dict.fromkeys(edit for edit in edits if edit is not None)) if None not in edits else ()


@lru_cache(maxsize=1)
def is_table(path: str, text: str) -> bool:
    """Whether a program is a litmus test in table form."""
    from mcheck.frontend.litmus import parse

    return path.endswith(".litmus") and parse(text, path, every=True).dialect


def repair_edits(before: str, after: str) -> tuple[Edit, ...]:
    """The edits, line by line, that make the text of a repaired program of the text as it was."""
    found = []
    for each in replaced_lines(before, after):
        common = min(len(each.old), len(each.new))
        for number, old in enumerate(each.old):
            new = each.new[number] if number < common else ""
            found.append(Edit(each.first + number + 1, 0, new, len(old)))
        rest = "".join(f"{line}\n" for line in each.new[common:])
        if rest:
            found.append(Edit(each.first + common + 1, 0, rest))
    return tuple(found)


def _edit(
    codes: tuple[str, ...], where: Point, place: Span | None, language: str, texts: SourceText
) -> SourceEdit | None:
    words = [find_word(code, language) for code in codes]
    text = texts.line(place) if place is not None else None
    if place is None or text is None or "" in words:
        return None
    python, whole = place.path.endswith(".py"), texts.whole(place.path)
    if python and not all(_can_stand(word, whole) for word in words):
        return None
    if not python:
        words = [w if is_declared(w, whole) else _inline(code) for w, code in zip(words, codes, strict=True)]
    end = "" if python else ";"
    indent = text[: len(text) - len(text.lstrip())]
    lines = "".join(f"{indent}{word}{end}\n" for word in words)
    above = _code_above(place, texts)
    if where.after:
        if not _ends_statement(text, python=python):
            return None
        return SourceEdit(place.path, place.line, len(text), "\n" + lines.rstrip("\n"))
    if above is not None and not _ends_statement(above, python=python):
        return None
    return SourceEdit(place.path, place.line, 0, lines)


def _in_place_of(code: str, pending: int, place: Span, language: str, texts: SourceText) -> SourceEdit | None:
    """An edit of a wait for groups that its line spells with the number of those that it leaves ``pending``."""
    text = texts.line(place)
    weaker = re.sub(r"\d+$", str(pending), code)
    for old, new in ((find_word(weaker, language), find_word(code, language)), (weaker, code)):
        if text is not None and old and text.count(old) == 1 and text.find(old) == _find_word(old, text):
            return SourceEdit(place.path, place.line, text.index(old), new, replaces=old)
    return None


def _find_word(word: str, text: str) -> int:
    """Where a word stands by itself; -1 if it does not."""
    found = re.search(rf"(?<![\w.]){re.escape(word)}(?!\d)", text)
    return found.start() if found is not None else -1


def _can_stand(word: str, text: str) -> bool:
    """Whether a source in Python knows the name that the word begins with, and no operand is left open."""
    name = re.compile(rf"\b{re.escape(word.partition('(')[0].partition('.')[0])}\b")
    known = any(name.search(_COMMENT.sub("", line)) for line in text.splitlines())
    return known and "…" not in word and not word.endswith("(bar)")


def _inline(code: str) -> str:
    return f'asm volatile("{code};" ::: "memory")'


def _code_above(place: Span, texts: SourceText) -> str | None:
    """The nearest line above that is not blank or a comment."""
    for number in range(place.line - 1, 0, -1):
        line = texts.line(Span(place.path, number, 1))
        if line is None:
            return None
        if _COMMENT.sub("", line).strip():
            return line
    return None


def _ends_statement(line: str, *, python: bool) -> bool:
    """Whether a statement can begin below the line."""
    code = _COMMENT.sub("", line).rstrip()
    if not python:
        return code.endswith(_C_ENDS)
    return not _PYTHON_OPEN.search(code) and all(code.count(a) <= code.count(b) for a, b in ("()", "[]", "{}"))
