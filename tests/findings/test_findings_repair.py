"""A remedy's instruction goes where the sentence says, whatever stands in that line."""

from __future__ import annotations

import pytest

from mcheck.base.errors import Span
from mcheck.findings.finding import Access, Finding
from mcheck.findings.repair import apply_edits, make_edits

FENCE = "fence.proxy.async"


def mended(text: str, missing: str, *places: tuple[int, int], table: bool = False) -> str:
    accesses = tuple(Access(thread="P", instruction="", span=Span("x", line, column)) for line, column in places)
    finding = Finding(
        code="RACE004", kind="race", severity="error", message="", accesses=accesses, missing=f"Execute {missing}."
    )
    lines = text.split("\n")
    return "\n".join(apply_edits(lines, make_edits(finding, lines, table=table)))


@pytest.mark.parametrize(
    ("text", "where", "place", "after"),
    [
        ("  a;", "after", (1, 3), "  a;\n  F;"),
        ("  a;  // why", "after", (1, 3), "  a;  // why\n  F;"),
        ("  a; b;", "after", (1, 3), "  a; F; b;"),
        ("  a,\n    1;\n  b;", "after", (1, 3), "  a,\n    1;\n  F;\n  b;"),
        ("  a;", "before", (1, 3), "  F;\n  a;"),
        ("  a; b;", "before", (1, 6), "  a; F; b;"),
        ("  @p b;", "before", (1, 6), "  F;\n  @p b;"),
        ("  await b;", "before", (1, 9), "  F;\n  await b;"),
        ("L: b;", "before", (1, 4), "L: F; b;"),
        ("if (x) { a; }", "after", (1, 10), "if (x) { a; F; }"),
    ],
)
def test_in_a_block(text: str, where: str, place: tuple[int, int], after: str) -> None:
    assert mended(text, f"{FENCE} {where} line 1", place) == after.replace("F", FENCE)


def test_in_a_table_a_row_of_its_own() -> None:
    assert mended(" a | b ;", f"{FENCE} after line 1", (1, 6), table=True) == f" a | b ;\n | {FENCE} ;"
    assert mended(" a | b | c ;", f"{FENCE} before line 1", (1, 2), table=True) == f" {FENCE} | | ;\n a | b | c ;"


def test_two_places_at_once() -> None:
    text = mended("a;\nb;", f"{FENCE} after line 1, and execute {FENCE} before line 2", (1, 1), (2, 1))
    assert text == f"a;\n{FENCE};\n{FENCE};\nb;"


def test_one_instruction_at_several_places() -> None:
    text = mended("a;\nb;\nc;", f"{FENCE} before line 1, after line 2 and before line 3", (1, 1), (2, 1), (3, 1))
    assert text == f"{FENCE};\na;\nb;\n{FENCE};\n{FENCE};\nc;"


def test_between_two_lines_is_one_place() -> None:
    assert mended("a;\nb;\nc;", f"{FENCE} after line 1, before line 3", (1, 1), (3, 1)) == f"a;\n{FENCE};\nb;\nc;"


def test_nothing_is_changed_where_no_place_is_named() -> None:
    assert mended("a;", "the wait first", (1, 1)) == "a;"
    assert mended("a;", f"{FENCE} after line 7", (1, 1)) == "a;"
