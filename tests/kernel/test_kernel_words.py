"""Words with more writes than are looked at: what may stand before them all is not proved."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.kernel.engine import check
from mcheck.kernel.states import answer
from mcheck.syntax import parse

TEXT = """PTX many
{{
  .global .u32 x = 0;
}}
a@cta 0, warp 0, lane 0 {{
  {stores}
}}
b@cta 0, warp 1, lane 0 {{
  {other}
}}
"""


@pytest.mark.parametrize("other", ["st.relaxed.gpu.u32 [x], 99;", ".reg .b32 r; atom.relaxed.gpu.exch.b32 r, [x], 99;"])
@pytest.mark.parametrize(("count", "verdict"), [(4, "proved"), (16, "bounded")])
def test_a_write_that_may_stand_before_many(other: str, count: int, verdict: str) -> None:
    stores = "\n  ".join(f"st.relaxed.gpu.u32 [x], {k};" for k in range(1, count + 1))
    found = check(parse(TEXT.format(stores=stores, other=other), "many.litmus"), load_model("ptx-9.0"))
    assert found.verdict == verdict, found.reason


STATES = {
    "signed and unsigned minima do not commute": (
        "red.relaxed.gpu.global.min.s32 [x], 0xffffffff;",
        "red.relaxed.gpu.global.min.u32 [x], 5;",
        {5, 0xFFFFFFFF},
    ),
    "a store may come before a reduction, or behind it": (
        "st.relaxed.gpu.u32 [x], 5;",
        "red.relaxed.gpu.global.add.u32 [x], 1;",
        {5, 6},
    ),
    "one function twice": (
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        {0},
    ),
    "two functions": (
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        "red.relaxed.gpu.global.inc.u32 [x], 0;",
        {0, 1},
    ),
}


@pytest.mark.parametrize(("one", "two", "values"), STATES.values(), ids=STATES)
def test_what_may_change_places_does(one: str, two: str, values: set[int]) -> None:
    text = f"PTX t\n{{ .global .u32 x; }}\na@cta 0 {{ {one} }}\nb@cta 1 {{ {two} }}\nlocations [x;]\n"
    for lines in (text, text.replace("a@cta 0", "a@cta 2")):  # the order of the roles is that of the first execution
        found = answer(parse(lines, "t.litmus"), load_model("ptx-9.0"))
        assert {dict(o.state)["x"] for o in found.outcomes} == values


CROWD = """PTX crowd
{{ .shared .u32 x; }}
all@cta 0, warp 0..2 {{
  .reg .b32 r;
  {} [x], {};
}}
"""


@pytest.mark.parametrize(
    ("opcode", "operand"),
    [("red.shared.inc.u32", 9), ("red.shared.add.f32", "0f3F800000"), ("red.shared.inc.u32", "%laneid")],
)
def test_a_crowd_at_a_word_that_nobody_reads(opcode: str, operand: object) -> None:
    """The order in which they come is of no consequence, whatever they do there."""
    found = check(parse(CROWD.format(opcode, operand), "crowd.litmus"), load_model("ptx-9.0"))
    assert (found.verdict, found.executions) == ("proved", 1)
