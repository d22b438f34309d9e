"""What findings say is missing: the same whichever command says it, and nothing beside the point."""

from __future__ import annotations

import pytest

from mcheck.check.case import Options, Settings
from mcheck.check.single import check_case
from mcheck.run.case import Case
from mcheck.run.single import run_case

STORED = """PTX stored-and-read
{{ .global .align 16 .u32 dst[4]; .shared .align 16 .u32 buf[4]; }}
P@cta 0 {{
  st.shared.u32 [buf], 1;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  {commit}
  cp.async.bulk.wait_group{wait};
  ld.global.u32 r0, [dst];
}}
exists (P:r0 == 1)
expect race
"""
COMMIT = "cp.async.bulk.commit_group;"


@pytest.mark.parametrize(
    ("commit", "wait", "says"),
    [
        (COMMIT, ".read 0", "Execute cp.async.bulk.wait_group 0 before line 9. The wait at line 8 has .read"),
        (
            COMMIT,
            " 1",
            "Execute cp.async.bulk.wait_group 0 before line 9. The wait at line 8 leaves the 1 latest groups",
        ),
        (
            "",
            " 0",
            "Execute cp.async.bulk.commit_group; cp.async.bulk.wait_group 0 before line 9. The wait at line 8 does",
        ),
    ],
)
def test_run_and_check_advise_alike(commit: str, wait: str, says: str) -> None:
    case = Case("stored.litmus", text=STORED.format(commit=commit, wait=wait))
    ran, checked = run_case(case, Settings()), check_case(case, Settings(), Options())
    told = [next(f.missing for f in found if f.code == "RACE003") for found in (ran.findings, checked.findings)]
    assert told[0].startswith(says)
    assert told[0] == told[1]


STAGED = """PTX staged
{{ .global .align 128 .u32 dst[32]; .shared .align 128 .u32 buf[32]; }}
P@cta 0, warp 0 {{
  st.shared.u32 [buf + 4*%laneid], 1;
  {fence}
  bar.warp.sync 0xffffffff;
  if (%laneid == 0) {{
    cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  }}
}}
"""


def test_why_the_fence_of_another_lane_is_not_enough() -> None:
    text = STAGED.format(fence="if (%laneid == 3) { fence.proxy.async.shared::cta; }")
    checked = check_case(Case("staged.litmus", text=text), Settings(), Options())
    told = next(f.missing for f in checked.findings if f.code == "RACE004")
    assert "is executed by P[3]: it covers what that thread wrote or took over, not this write of P[0]." in told
