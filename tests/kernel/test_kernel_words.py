"""Words with more writes than are looked at: what may stand before them all is not proved."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.kernel.engine import check
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
