"""wgmma is one operation of its warp for every engine: any lane waits for it, any lane's fence comes before it."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.protocol.findings_answer import check as protocol
from mcheck.engines.z3.engine import answer as solver
from mcheck.frontend.litmus import parse

TEXT = """PTX wgmma-lanes
{{
  .shared .align 128 .b8 ab[4096];
  .shared .b64 full;
}}
math@cta 0, warp 0, lane 0..2 {{
  if (%laneid == 1) {{ mbarrier.init.shared::cta.b64 [full], 1; }}
  bar.warp.sync 3;
  {before}
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{d0}}, [ab, 2048], [ab + 2048, 2048];
  wgmma.commit_group.sync.aligned;
  {wait}
  if (%laneid == 1) {{ mbarrier.arrive.shared::cta.b64 _, [full]; }}
  wgmma.wait_group.sync.aligned 0;
}}
writer@cta 0, warp 1, lane 0 {{
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  st.shared.u32 [ab], 1;
}}
"""
BEFORE = "if (%laneid == 0) { st.shared.u32 [ab], 7; fence.proxy.async; }"


@pytest.mark.parametrize("engine", ["explicit", "solver", "protocol"])
@pytest.mark.parametrize(
    ("before", "wait", "codes"),
    [
        ("", "wgmma.wait_group.sync.aligned 0;", {"UB201"}),
        ("", "", {"UB201", "RACE003"}),
        (BEFORE, "wgmma.wait_group.sync.aligned 0;", {"UB201", "RACE001"}),
        (
            BEFORE.replace("fence.proxy.async; ", ""),
            "wgmma.wait_group.sync.aligned 0;",
            {"UB201", "RACE001", "RACE004"},
        ),
    ],
    ids=["waited", "unwaited", "written-before", "written-unfenced"],
)
def test_an_elected_lane_hands_on_the_warps_wgmma(engine: str, before: str, wait: str, codes: set[str]) -> None:
    program = parse(TEXT.format(before=before, wait=wait), "wgmma.litmus")
    model = load_model("ptx-9.0")
    if engine == "protocol":
        found = protocol(program, model, timeout=60).findings
    else:
        found = (explicit if engine == "explicit" else solver)(program, model, findings=True, timeout=60).findings
    assert {f.code for f in found if f.severity == "error"} == codes
