"""The page on what a chip does has the tables of the committed results."""

from __future__ import annotations

import pytest

from hardware.litmus.rules import PAGE, RULES, tables, written


@pytest.mark.daily(days=4, least=0)
def test_the_tables_are_those_of_the_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert written(text) == text, "python -m hardware.litmus.rules"


def test_every_rule_ran() -> None:
    table = tables()["rules"]
    assert table.count("\n") == len(RULES) + 1
    assert "not run" not in table
