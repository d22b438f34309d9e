"""Corrections of misspelt words: the hint ``did you mean X?`` of an error as an edit of the text."""

from __future__ import annotations

import re

from mcheck.base.errors import McheckError
from mcheck.findings.repair import Edit

_MEANT = re.compile(r"\bdid you mean '?(?P<word>[^'\s?]+)'?\?")


def find_correction(error: McheckError, lines: list[str]) -> Edit | None:
    """The replacement of the word at the place of an error by the one that its hint names."""
    meant, span = _MEANT.search(error.hint or ""), error.span
    if meant is None or span is None or not 0 < span.line <= len(lines):
        return None
    line, start = lines[span.line - 1], span.column - 1
    wrong, word = line[start : start + span.length], meant["word"]
    for mark in ".%":  # the place may begin behind the mark that the word has
        if word.startswith(mark) and not wrong.startswith(mark) and line[start - 1 : start] == mark:
            word = word[1:]
    return Edit(span.line, start, word, len(wrong)) if wrong.strip() and wrong != word else None
