"""How long the text of a finding is: the program of each page is one bug, of at most twelve lines."""

from __future__ import annotations

import re

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings import catalogue
from mcheck.findings.entry import Entry
from mcheck.report import checked
from mcheck.report.finding import MOST_LINES
from mcheck.report.lines import plain

LITMUS = [entry for entry in catalogue.all() if not entry.is_module_only]
BESIDE = {"UB216": 2, "DEAD005": 2}
"""Codes whose program has another bug as well."""


@pytest.mark.parametrize("entry", LITMUS, ids=lambda entry: entry.code)
def test_the_program_of_a_page_is_one_bug_of_twelve_lines(entry: Entry) -> None:
    result = check_case(Case(f"{entry.code}.litmus", text=entry.bad), Settings(timeout=20), Options())
    text = [plain(line) for line in checked.describe(result)]
    starts = [k for k, line in enumerate(text) if re.match(r"  (error|review|advice)\[", line)]
    assert 1 <= len(starts) <= BESIDE.get(entry.code, 1), "\n".join(text)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        bug = [text[start], *(line for line in text[start + 1 : end] if line.startswith("    "))]
        assert len(bug) <= MOST_LINES, "\n".join(bug)
