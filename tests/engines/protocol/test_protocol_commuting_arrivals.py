"""Arrivals that change places between phases: one execution for all gives the answers of all executions."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol.exploration import check
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
def test_clusters_that_differ_a_little_are_answered_alike(seed: int) -> None:
    """With the reduction and without it; what is proved with it has no finding without it."""
    text = drawn(seed)
    one, every = answered(text), answered(text, "commuting-arrivals")
    assert told(one) == told(every) or (one.verdict == "proved" and every.verdict in ("unknown", "bounded"))
