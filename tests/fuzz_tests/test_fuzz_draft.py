"""Programs taken apart, damaged, and made small."""

from __future__ import annotations

from random import Random

from mcheck.frontend.litmus import parse
from tests.fuzz.damage import MISTAKES, mutate
from tests.fuzz.draft import Draft, Role, read, units
from tests.fuzz.minimise import minimise
from tests.fuzz.programs import draft, legal

NESTED = ("a;", "if (r0 == 1) {", "b;", "if (r1 == 1) {", "c;", "} else {", "d;", "}", "}", "e;")


def test_statements_and_blocks() -> None:
    assert units(NESTED) == [(0, 1), (1, 9), (2, 3), (3, 8), (4, 5), (6, 7), (9, 10)]


def test_every_mistake_finds_an_occasion() -> None:
    made = [draft(Random(f"mistakes:{k}"), ["mbarrier", "bulk"]) for k in range(60)]
    for mistake in MISTAKES:
        changed = [mistake(Random(k), d) for k, d in enumerate(made)]
        assert sum(c is not None and c != d for c, d in zip(changed, made, strict=True)) > 5, mistake.__name__


def test_most_mistakes_leave_a_text_that_can_be_read() -> None:
    made = [mutate(Random(k), draft(Random(f"legal:{k}"))) for k in range(100)]
    assert sum(map(legal, made)) > 60


def test_the_smallest_program_that_still_shows_it() -> None:
    lines = ("mov.u32 r0, 1;", "if (r0 == 1) {", "st.global.u32 [x], 1;", "}", "ld.global.u32 r1, [y];")
    other = Role("Q", "cta 1", ("ld.global.u32 r0, [y];",))
    objects = (".global .u32 x;", ".global .u32 y;")
    big = Draft("big", "ptx-9.3", objects, (Role("P", "cta 0", lines), other), ("P:r1",), "exists (P:r1 == 0)")

    def shows(d: Draft) -> bool:
        return legal(d) and "st.global.u32 [x]" in d.text()

    small = minimise(big, shows)
    assert small.text() == ("PTX big\nmodel ptx-9.0\n{\n  .global .u32 x;\n}\nP@cta 0 {\n  st.global.u32 [x], 1;\n}\n")
    assert read(small.text()) == small
    parse(small.text(), "small.litmus")
