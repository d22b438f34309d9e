"""Proofs for every number of rounds of sketches that read what an earlier grid has written."""

from __future__ import annotations

import pytest

from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs.parametric_proof import Proof, prove

TEXT = """PTX tiles-of-an-earlier-grid
const N = any;
{
  .global .align 128 .b8 src[128*N + 128] written by earlier grid;
  .shared .align 128 .b8 tile[128];
  .shared .b64 full, empty;
}
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  WAIT
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k+1)%2;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src + 128*k], 128, [full];
  }
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
    ld.shared.u32 r0, [tile];
    fence.proxy.async;
    mbarrier.arrive.shared::cta.b64 _, [empty];
  }
}
"""


def proved(wait: str) -> Proof:
    program = parse(TEXT.replace("WAIT", wait), "any.litmus", every=True)
    return prove(program, load_model("ptx-9.0"), "ptx", 2, Limit(None))


def test_a_ring_over_what_an_earlier_grid_writes() -> None:
    found = proved("griddepcontrol.wait;").answer
    assert (found.verdict, found.findings) == ("proved", ())


def test_without_the_wait_there_is_no_proof() -> None:
    with pytest.raises(Aperiodic, match="something is found"):
        proved("")
