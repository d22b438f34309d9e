"""Guards: an operation whose predicate is false does nothing, local computation and exits included."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.kernel.engine import check
from mcheck.syntax import parse

SKETCH = """PTX guards
{{
  .shared .u32 x;
}}
a@cta 0, warp 0, lane 0 {{
  .reg .u32 v;
  .reg .pred p;
  mov.u32 v, 1;
  setp.eq.u32 p, v, {compared};
  {guarded}
  if (v == 1) {{ st.shared.u32 [x], 1; }}
}}
b@cta 0, warp 1, lane 0 {{
  ld.shared.u32 r0, [x];
}}
"""


@pytest.mark.parametrize(
    ("compared", "guarded", "verdict"),
    [
        (1, "@p mov.u32 v, 2;", "proved"),
        (2, "@p mov.u32 v, 2;", "finding"),
        (2, "@!p xor.b32 v, v, 1;", "proved"),
        (1, "@!p xor.b32 v, v, 1;", "finding"),
        (1, "@p exit;", "proved"),
        (2, "@p exit;", "finding"),
        (1, "@!p exit;", "finding"),
    ],
)
def test_a_guard_decides_whether_a_computation_or_an_exit_happens(compared: int, guarded: str, verdict: str) -> None:
    program = parse(SKETCH.format(compared=compared, guarded=guarded), "guards.litmus")
    assert check(program, load_model("ptx-9.0"), timeout=30).verdict == verdict
