"""The steps that a finding shows: those that decide, each with the round that it belongs to."""

from __future__ import annotations

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.findings.finding import Finding
from mcheck.findings.trace import StepPart
from mcheck.frontend.litmus import parse

RING = """PTX ring
const S = 2, N = 9;
{
  .global .align 128 .u32 src[512];
  .shared .align 128 .u32 ring[64];
  .shared .align 128 .u32 other[1024];
  .shared .b64 full[2];
  .shared .b64 empty[2];
}
producer@cta 0, warp 0, lane 0 {
  for s in 0..S { mbarrier.init.shared::cta.b64 [full + 8*s], 1; mbarrier.init.shared::cta.b64 [empty + 8*s], COUNT; }
  bar.sync 0;
  for k in 0..N {
    if (k >= S) { await mbarrier.try_wait.parity.shared::cta.b64 [empty + 8*(k%S)], ((k/S)+PARITY)%2; }
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full + 8*(k%S)], 128;
    for j in 0..8 { ld.shared.u32 r0, [other + 128*j]; }
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
      [ring + 128*(k%S)], [src + 128*k], 128, [full + 8*(k%S)];
  }
}
consumer@cta 0, warp 1 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full + 8*(k%S)], (k/S)%2;
    ld.shared.u32 r0, [ring + 128*(k%S) + 4*%laneid];
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [empty + 8*(k%S)]; }
  }
}
"""


def found(*, count: int = 1, parity: int = 1) -> tuple[Finding, ...]:
    text = RING.replace("COUNT", str(count)).replace("PARITY", str(parity))
    return check(parse(text, "ring.litmus"), load_model("ptx-9.0"), timeout=60).findings


def test_a_sound_ring_has_none() -> None:
    assert not [f for f in found() if f.severity == "error"]


def test_a_race_shows_the_access_the_arrive_and_the_copy_of_their_rounds() -> None:
    race = next(f for f in found(parity=0) if f.code == "RACE003")
    steps = [(s.thread.partition("[")[0], s.instruction.split(".")[0], s.iteration) for s in race.trace]
    assert steps[-1] == ("producer", "cp", "k=2") or steps[-1][:2] == ("consumer", "ld")
    assert {("producer", "cp", "k=2"), ("producer", "mbarrier", "k=2")} <= set(steps)
    assert ("producer", "ld", "k=2 j=3") not in steps


def test_a_deadlock_shows_what_was_done_to_the_objects_that_are_waited_for() -> None:
    (dead,) = found(count=2)
    assert "producer at line 14 in round k=2" in dead.message
    assert "consumer[0..31] at line 24 in round k=2" in dead.message
    shown = {(s.instruction.split()[0], s.iteration, s.part) for s in dead.trace}
    arrive, expect = "mbarrier.arrive.shared::cta.b64", "mbarrier.arrive.expect_tx.shared::cta.b64"
    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
    for turn in ("k=0",):
        assert (arrive, turn, StepPart.EXECUTES) in shown
        assert (expect, turn, StepPart.EXECUTES) in shown
        assert (copy, turn, StepPart.COMPLETES) in shown


def test_a_slot_that_was_filled_before_is_not_called_free_from_the_start() -> None:
    text = RING.replace("COUNT", "1").replace("PARITY", "1").replace("[src + 128*k], 128,", "[src + 128*k], 64,")
    (dead,) = (
        f for f in check(parse(text, "ring.litmus"), load_model("ptx-9.0"), timeout=60).findings if f.kind == "deadlock"
    )
    assert dead.missing.startswith("Expect 64 bytes at line 15 instead of 128: line 17 completes 64")
    assert "free from the start" not in dead.missing
