"""A remedy's instruction goes where the sentence says, whatever stands in that line."""

from __future__ import annotations

import pytest

from mcheck.base.phrase import Site
from mcheck.findings.fix import Change, Fix, Insert, Point, Property
from mcheck.findings.repair import apply_edits, make_edits

FENCE = "fence.proxy.async"


def mended(text: str, *points: tuple[str, int, int], table: bool = False) -> str:
    """The text with the fence before or after statements at these lines and columns."""
    where = tuple(Point(Site(line, column), after=side == "after") for side, line, column in points)
    lines = text.split("\n")
    return "\n".join(
        apply_edits(lines, make_edits((Fix((Insert(codes=(FENCE,), points=where),)),), lines, table=table))
    )


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
    assert mended(text, (where, *place)) == after.replace("F", FENCE)


def test_in_a_table_a_row_of_its_own() -> None:
    assert mended(" a | b ;", ("after", 1, 6), table=True) == f" a | b ;\n | {FENCE} ;"
    assert mended(" a | b | c ;", ("before", 1, 2), table=True) == f" {FENCE} | | ;\n a | b | c ;"


def test_several_places() -> None:
    assert mended("a;\nb;", ("after", 1, 1), ("before", 2, 1)) == f"a;\n{FENCE};\n{FENCE};\nb;"
    text = mended("a;\nb;\nc;", ("before", 1, 1), ("after", 2, 1), ("before", 3, 1))
    assert text == f"{FENCE};\na;\nb;\n{FENCE};\n{FENCE};\nc;"


def test_nothing_is_changed_outside_of_the_text() -> None:
    assert mended("a;", ("after", 7, 1)) == "a;"


def test_half_a_fix_is_no_edit() -> None:
    fence = Insert(codes=(FENCE,), points=(Point(Site(1), after=True),))
    scope = Change(what=Property.SCOPE, sites=(Site(2),), new="gpu")
    fix = Fix((fence, scope))
    assert make_edits((fix,), ["a;", "b;"]) == ()
    assert len(make_edits((fix,), ["a;", "b;"], parts=True)) == 1


def test_an_order_is_written_where_the_operation_spells_one() -> None:
    """Instead of a fence beside it, which is told first."""
    fence = Insert(codes=("fence.acq_rel.gpu",), points=(Point(Site(1, 1), after=False),))
    order = Change(what=Property.SEMANTICS, sites=(Site(1, 1),), new=".release.gpu")
    fix = Fix((fence,), others=(order,))
    for written, changed in (
        ("st.relaxed.gpu.b32 [x], 1;", "st.release.gpu.b32 [x], 1;"),
        ("atom.add.gpu.u32 r, [x], 1;", "fence.acq_rel.gpu;\natom.add.gpu.u32 r, [x], 1;"),
    ):
        assert "\n".join(apply_edits([written], make_edits((fix,), [written]))) == changed


@pytest.mark.parametrize(
    ("what", "line", "new", "edited"),
    [
        (
            Property.COUNT,
            "mbarrier.init.shared::cta.b64 [full[s]], 32;",
            "1",
            "mbarrier.init.shared::cta.b64 [full[s]], 1;",
        ),
        (
            Property.BYTES,
            "x: mbarrier.expect_tx.b64 [b + 32], 32; // 32",
            "64",
            "x: mbarrier.expect_tx.b64 [b + 32], 64; // 32",
        ),
        (
            Property.PARITY,
            "  await mbarrier.try_wait.parity.b64 [b], 32",
            "0",
            "  await mbarrier.try_wait.parity.b64 [b], 0",
        ),
        (Property.COUNT, "mbarrier.init.shared::cta.b64 [b], %r32;", "1", None),
        (Property.COUNT, "mbarrier.init.shared::cta.b64 [b], N*32;", "1", None),
        (Property.COUNT, "mbarrier.init.shared::cta.b64 [b], 32;", "the number of arrivals", None),
        (Property.THREADS, "barrier.sync 1, 32;", "64", None),
    ],
)
def test_a_number_that_is_spelled_is_replaced(what: Property, line: str, new: str, edited: str | None) -> None:
    start = line.index(" mbarrier") + 2 if " mbarrier" in line else 1
    fix = Fix((Change(what=what, sites=(Site(1, start),), new=new, old="32"),))
    edits = make_edits((fix,), [line])
    assert (apply_edits([line], edits) if edits else None) == (None if edited is None else [edited])
