"""Guards: an operation whose predicate is false does nothing, local computation and exits included."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

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


@pytest.mark.daily
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


ELECTED = """PTX elected
{{
  .global .align 16 .b8 out[512];
  .shared .align 16 .b8 tile[512];
}}
epi@cta 0, warp 0..4 {{
  .reg .pred lead;
  setp.{lead};
  st.shared.u32 [tile + 4*%tid.x], 1;
  {fence}
  bar.sync 0;
  @lead cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 512;
  @lead cp.async.bulk.commit_group;
  @lead cp.async.bulk.wait_group 0;
}}
"""
FENCE = "fence.proxy.async.shared::cta;"


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("lead", "fence", "agents", "codes"),
    [
        ("eq.u32 lead, %tid.x, 37", FENCE, 5, []),
        ("eq.u32 lead, %tid.x, 37", "", 5, ["RACE004"]),
        ("eq.u32 lead, %tid.x, 999", "", 4, []),  # nobody copies
        ("eq.u32 lead, %laneid, 3", FENCE, 8, ["RACE003"]),  # four threads copy to one place
    ],
)
def test_the_lanes_that_a_guard_lets_copy_are_told_from_the_others(
    lead: str, fence: str, agents: int, codes: list[str]
) -> None:
    search = Search(parse(ELECTED.format(lead=lead, fence=fence), "elected.litmus"), load_model("ptx-9.0"), "ptx", 2)
    assert search.explore(30) is None
    assert search.setup is not None
    assert len(search.setup.partition) == agents
    assert [f.code for f in search.sorted_findings()] == codes


def test_a_copy_that_all_lanes_make_to_one_place_races() -> None:
    text = ELECTED.format(lead="ne.u32 lead, %tid.x, 999", fence=FENCE).replace("warp 0..4", "warp 0")
    search = Search(parse(text, "elected.litmus"), load_model("ptx-9.0"), "ptx", 2)
    assert search.explore(30) is None
    assert search.setup is not None
    assert len(search.setup.partition) == 1
    assert "race" in {f.kind for f in search.sorted_findings()}
