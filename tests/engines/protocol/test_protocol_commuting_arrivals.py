"""Arrivals that change places between phases: one execution for all gives the answers of all executions."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.result import Answer
from mcheck.base.reasons import Cause
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from tests.engines.protocol.clusters_of_two import BOTH, OWN, READS, cluster

MODEL = load_model("ptx-9.0")


def answered(text: str, *without: str) -> Answer:
    """What the engine finds without some passes."""
    return check(parse(text, "cluster.litmus"), MODEL, timeout=60, passes=passes_without(without))


def told(found: Answer) -> tuple[str, frozenset[tuple[str, object]]]:
    """The verdict, and of the findings codes and places."""
    return found.verdict, frozenset((f.code, tuple(a.span for a in f.accesses)) for f in found.findings)


def test_an_asymmetric_cluster_is_proved_from_one_execution() -> None:
    """As many executions for twelve rounds as for four."""
    few, many = (answered(cluster(n, 3, before=(READS, READS))) for n in (4, 12))
    assert (few.verdict, many.verdict) == ("proved", "proved")
    assert many.executions <= few.executions + 2


@pytest.mark.daily
@pytest.mark.parametrize("stages", [1, 2])
def test_all_executions_of_a_small_cluster_say_the_same(stages: int) -> None:
    """The orders that are left out are there, and clean."""
    text = cluster(4, stages, before=(READS, READS))
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every) == ("proved", frozenset())
    assert stages == 1 or one.executions < every.executions


def test_a_read_between_two_releases_is_found() -> None:
    """The own tile is loaded again once the quick consumer has arrived twice, while the slow one still reads it."""
    text = cluster(3, 2, before=(READS, BOTH), between=("", OWN))
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every)
    assert one.verdict == "finding"


def test_the_first_releases_of_a_cluster_commute_with_later_ones() -> None:
    """Whoever releases a stage for the second time does not know that a slow one has left the first barrier."""
    few, many = (answered(cluster(n, 2, before=(READS, READS), primed=True)) for n in (4, 12))
    assert (few.verdict, many.verdict) == ("proved", "proved")
    assert many.executions <= few.executions + 2


def test_the_last_wait_for_a_stage_knows_all_its_releases() -> None:
    """No barrier is behind the rounds, but nobody leaves before all have released all stages."""
    few, many = (answered(cluster(n, 2, before=(READS, READS), drained=True, last="")) for n in (4, 12))
    assert (few.verdict, many.verdict) == ("proved", "proved")
    assert many.executions <= few.executions + 2


WARPGROUPS = """PTX warpgroups
target sm_90a
const S = 2, N = ROUNDS;
{
  .global .align 128 .b8 gA[64], gB[64];
  .shared .align 128 .b8 a[S][64], b[S][64];
  .shared .align 8 .b64 full[S], empty[S];
}
math@cluster 0, cta 0..2, warp 0..4 {
  .reg .b32 d0;
  barrier.cluster.arrive.relaxed.aligned;
  barrier.cluster.wait.acquire.aligned;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {d0}, [a[k%S], 64], [b[k%S], 64], 1, 1, 1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    bar.warp.sync 0xffffffff;
    if (%laneid < 2) { mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty[k%S]@(%laneid)]; }
  }
}
tma@cluster 0, cta 0..2, warp 4, lane 0 {
  for i in 0..S {
    mbarrier.init.shared::cta.b64 [full[i]], 1;
    mbarrier.init.shared::cta.b64 [empty[i]], 8;
  }
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N+S {
    await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    if (k < N) {
      if (%cluster_ctarank == 0) {
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
          [a[k%S]], [gA], 64, [full[k%S]], 3;
      }
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [b[k%S]], [gB], 64, [full[k%S]];
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 128;
    }
  }
}
"""


@pytest.mark.daily(days=4, least=0)
def test_releases_by_lanes_are_answered_from_one_execution() -> None:
    """A warp waits for the wgmma of the others, which orders no memory, so an arrival may take effect late: the answer
    is bounded. Other orders of the steps have nothing to add to that.
    """
    few, many = (answered(WARPGROUPS.replace("ROUNDS", str(n))) for n in (3, 5))
    assert many.executions <= few.executions + 2
    assert [few.verdict, few.reasons] == [many.verdict, many.reasons]
    assert few.verdict == "bounded"
    assert few.reasons[0].cause == Cause.INTERLEAVINGS
    assert "may take effect after" in few.reasons[0].what


@pytest.mark.daily
@pytest.mark.parametrize("among", ["st.shared.u32 [own[k]], 1;", "ld.shared.u32 r0, [own[k]];"])
def test_an_access_between_the_first_releases_is_found(among: str) -> None:
    """The stage is filled once the quick consumer has released it twice, while the slow one still uses it."""
    text = cluster(3, 2, before=(READS, READS), primed=True, while_priming=("", among))
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every)
    assert one.verdict == "finding"


LATE_WAIT = (
    """PTX late-wait
{ .shared .align 8 .b64 bar, told, first, second; .shared .u32 x; }
init@cluster 0, cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [bar], 3;
  mbarrier.init.shared::cta.b64 [told], 1;
  mbarrier.init.shared::cta.b64 [first], 1;
  mbarrier.init.shared::cta.b64 [second], 1;
  fence.mbarrier_init.release.cluster;
  START
}
late@cluster 0, cta 0, warp 1, lane 0 {
  START
  await mbarrier.try_wait.parity.shared::cta.b64 [told], 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  ld.shared.u32 r0, [x];
}
"""
    + "".join(f"free{k}@cluster 0, cta 0, warp {k + 2}, lane 0 {{ START ARRIVE }}\n" for k in range(5))
    + """
writer@cluster 0, cta 0, warp 7, lane 0 {
  START
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  mbarrier.arrive.shared::cta.b64 _, [first];
  ARRIVE
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [second];
  st.shared.u32 [x], 1;
  ARRIVE
}
teller@cluster 0, cta 0, warp 8, lane 0 {
  START
  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;
  ARRIVE
  mbarrier.arrive.shared::cta.b64 _, [told];
}
last@cluster 0, cta 0, warp 9, lane 0 {
  START
  await mbarrier.try_wait.parity.shared::cta.b64 [second], 0;
  ARRIVE
}
"""
)


def test_a_wait_for_the_last_phase_that_may_find_an_earlier_one_is_found() -> None:
    """If the teller arrives in phase 2, whoever knows of it waits for that phase. If it arrives in phase 1, that says
    nothing of the end of phase 1, and the wait may end with phase 0.
    """
    text = LATE_WAIT.replace("START", "barrier.cluster.arrive; barrier.cluster.wait;")
    text = text.replace("ARRIVE", "mbarrier.arrive.shared::cta.b64 _, [bar];")
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every)
    assert [f.code for f in one.findings] == ["RACE001"]


def drawn(seed: int) -> str:
    """A cluster with something changed, mostly in one CTA only."""
    rng = random.Random(seed)
    before, between, order = [READS, READS], ["", ""], ["01", "01"]
    rank = rng.randrange(2)
    for _ in range(rng.randrange(1, 3)):
        match rng.randrange(4):
            case 0:
                before[rank], between[rank] = rng.choice([(BOTH, OWN), (READS, OWN), (OWN, BOTH), ("", READS)])
            case 1:
                order[rank] = rng.choice(["10", "01", "0", "011"])
            case 2:
                before[rank] = rng.choice([BOTH, OWN, ""])
            case 3:
                rank = 1 - rank
    relaxed = rng.randrange(6)
    more = random.Random(seed + 1000)
    primed, drained = more.random() < 0.5, more.random() < 0.5
    while_priming = ["", ""]
    if more.random() < 0.3:
        while_priming[rank] = more.choice(
            ["st.shared.u32 [own[k]], 1;", "ld.shared.u32 r0, [both[k]];", "fence.proxy.async;"]
        )
    return cluster(
        rng.choice([2, 3, 4]),
        rng.choice([1, 2]),
        before=(before[0], before[1]),
        between=(between[0], between[1]),
        order=(order[0], order[1]),
        sem="relaxed" if relaxed == 0 else "release",
        wait="relaxed" if relaxed == 1 else "acquire",
        fence="" if relaxed == 2 else "fence.proxy.async;",
        primed=primed,
        by_lanes=more.random() < 0.3,
        drained=drained,
        while_priming=(while_priming[0], while_priming[1]),
        last="" if relaxed == 3 else "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
    )


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(12))
def test_clusters_that_differ_a_little_are_answered_alike(seed: int) -> None:
    """With the reduction and without it; what is proved with it has no finding without it."""
    text = drawn(seed)
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every) or (one.verdict == "proved" and every.verdict in ("unknown", "bounded"))
