"""Waits that come late: one that finds its phase over, and the next one not, may wait forever."""

from __future__ import annotations

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import answer
from mcheck.frontend.litmus import parse

LAGGARD = """PTX laggard
const TASKS = 12;
{
  .shared .align 8 .b64 full[2], done[2];
}
producer@cta 0, warp 0..2 {
  if (%warpid == 0) { if (%laneid == 0) {
    for s in 0..2 { mbarrier.init.shared::cta.b64 [full[s]], 1; mbarrier.init.shared::cta.b64 [done[s]], 1; }
  } }
  bar.sync 0, 96;
  for t in 0..TASKS {
    for j in 0..3 {
      const s = j % 2;
      const use = t*(2 - s) + j/2;
      await mbarrier.try_wait.parity.shared::cta.b64 [done[s]], (use%2)^1;
      if (%tid.x == 0) { mbarrier.arrive.shared::cta.b64 _, [full[s]]; }
    }
    bar.sync 1, 64;
  }
}
consumer@cta 0, warp 2 {
  bar.sync 0, 96;
  for t in 0..TASKS {
    for j in 0..3 {
      const s = j % 2;
      const use = t*(2 - s) + j/2;
      await mbarrier.try_wait.parity.shared::cta.b64 [full[s]], use%2;
      if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [done[s]]; }
    }
  }
}
"""


def test_a_warp_that_lags_behind_is_stuck_before_long() -> None:
    """The second warp waits for the phases as the first does, which needs it only at the end of a task: two stages are
    reused by then. Of the many orders those in which a wait goes on are run first.
    """
    found = answer(parse(LAGGARD, "laggard.litmus"), load_model("ptx-9.0"), brief=True)
    assert [f.code for f in found.findings] == ["DEAD003"]
    assert found.executions <= 3
