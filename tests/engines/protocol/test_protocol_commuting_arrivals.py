"""Arrivals that change places between phases: one execution for all gives the answers of all executions."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol import commuting_arrivals, exploration
from mcheck.frontend.litmus import parse

MODEL = load_model("ptx-9.0")


def cluster(
    rounds: int,
    stages: int,
    *,
    before: tuple[str, str] = ("", ""),
    between: tuple[str, str] = ("", ""),
    order: tuple[str, str] = ("01", "01"),
    sem: str = "release",
    wait: str = "acquire",
    fence: str = "fence.proxy.async;",
    last: str = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
) -> str:
    """Two CTAs: each loads its own tile, rank 0 multicasts another, and both consumers release the stages of both.

    ``before`` stands ahead of the releases of each consumer, ``between`` among them, which come in some ``order``;
    ``last`` is what all do at the end.
    """
    text = f"""PTX cluster
{{
  .global .align 128 .b8 a[{64 * rounds}], b[{32 * rounds}];
  .shared .align 128 .b8 own[{stages}][32], both[{stages}][32];
  .shared .align 8 .b64 full[{stages}], empty[{stages}];
}}
const S = {stages}, N = {rounds};
"""
    for rank in (0, 1):
        multicast = """
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [both[k%S]], [b + 32*k], 32, [full[k%S]], 3;"""
        text += f"""producer{rank}@cluster 0, cta {rank}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 2;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    await mbarrier.try_wait.parity.{wait}.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    {fence}
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [own[k%S]], [a + 64*k + {32 * rank}], 32, [full[k%S]];{"" if rank else multicast}
  }}
  {last}
}}
consumer{rank}@cluster 0, cta {rank}, warp 1, lane 0 {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    {before[rank]}
    {fence}
"""
        for k, to in enumerate(order[rank]):
            text += f"    {between[rank] if k else ''}\n"
            text += f"    mbarrier.arrive.{sem}.cluster.shared::cluster.b64 _, [empty[k%S]@{to}];\n"
        text += f"  }}\n  {last}\n}}\n"
    return text


OWN, BOTH = "ld.shared.u32 r0, [own[k%S]];", "ld.shared.u32 r1, [both[k%S]];"
READS = OWN + BOTH


def answered(text: str, monkeypatch: pytest.MonkeyPatch | None = None) -> Answer:
    """What the engine finds, with ``monkeypatch`` in all executions."""
    program = parse(text, "cluster.litmus")
    if monkeypatch is None:
        return exploration.check(program, MODEL, timeout=60)
    with monkeypatch.context() as patched:
        patched.setattr(commuting_arrivals, "prove_commuting", lambda *_: None)
        return exploration.check(program, MODEL, timeout=60)


def told(found: Answer) -> tuple[str, frozenset[tuple[str, object]]]:
    """The verdict, and of the findings codes and places."""
    return found.verdict, frozenset((f.code, tuple(a.span for a in f.accesses)) for f in found.findings)


def test_an_asymmetric_cluster_is_proved_from_one_execution() -> None:
    """As many executions for twelve rounds as for four."""
    few, many = (answered(cluster(n, 3, before=(READS, READS))) for n in (4, 12))
    assert (few.verdict, many.verdict) == ("proved", "proved")
    assert many.executions <= few.executions + 2


@pytest.mark.parametrize("stages", [1, 2])
def test_all_executions_of_a_small_cluster_say_the_same(stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The orders that are left out are there, and clean."""
    text = cluster(4, stages, before=(READS, READS))
    one, every = answered(text), answered(text, monkeypatch)
    assert told(one) == told(every) == ("proved", frozenset())
    assert stages == 1 or one.executions < every.executions


def test_a_read_between_two_releases_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The own tile is loaded again once the quick consumer has arrived twice, while the slow one still reads it."""
    text = cluster(3, 2, before=(READS, BOTH), between=("", OWN))
    one, every = answered(text), answered(text, monkeypatch)
    assert told(one) == told(every)
    assert one.verdict == "finding"


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
    return cluster(
        rng.choice([2, 3, 4]),
        rng.choice([1, 2]),
        before=(before[0], before[1]),
        between=(between[0], between[1]),
        order=(order[0], order[1]),
        sem="relaxed" if relaxed == 0 else "release",
        wait="relaxed" if relaxed == 1 else "acquire",
        fence="" if relaxed == 2 else "fence.proxy.async;",
        last="" if relaxed == 3 else "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
    )


@pytest.mark.parametrize("seed", range(6))
def test_clusters_that_differ_a_little_are_answered_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reduction and without it; what is proved with it has no finding without it."""
    text = drawn(seed)
    one, every = answered(text), answered(text, monkeypatch)
    assert told(one) == told(every) or (one.verdict == "proved" and every.verdict in ("unknown", "bounded"))
