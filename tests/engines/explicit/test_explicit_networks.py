"""Executions as graphs of networkx, and the search for cycles in them."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import pytest

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.shortest_paths import cheapest
from mcheck.executions import executions

LITMUS = Path(__file__).parents[3] / "litmus"
MP = """PTX mp
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.weak.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1; }
Q@cta 1 { ld.acquire.gpu.global.u32 r0, [y]; ld.weak.global.u32 r1, [x]; }
exists (Q:r0 == 1 /\\ Q:r1 == 0)
"""


def edges(graph: nx.MultiDiGraph, relation: str) -> list[tuple[int, int]]:
    return [(a, b) for a, b, key in graph.edges(keys=True) if key == relation]


def test_allowed_and_forbidden_executions_of_message_passing() -> None:
    graphs = executions(MP, forbidden=2)
    allowed = [g for g in graphs if g.graph["axiom"] is None]
    (stale,) = (g for g in graphs if g.graph["axiom"] is not None)
    assert {tuple(g.graph["state"].values()) for g in allowed} == {(0, 0), (0, 1), (1, 1)}
    assert stale.graph["state"] == {"Q:r0": 1, "Q:r1": 0}
    for g in graphs:
        reads = [n for n, sets in g.nodes(data="sets") if "R" in sets]
        assert sorted(b for _, b in edges(g, "rf")) == sorted(reads)
        assert all(g.nodes[a]["value"] == g.nodes[b]["value"] for a, b in edges(g, "rf"))
        assert all(g.nodes[a]["object"] == g.nodes[b]["object"] for a, b in edges(g, "co") + edges(g, "fr"))
        assert {g.nodes[n]["thread"] for n in g} == {"", "P", "Q"}


@pytest.mark.daily
@pytest.mark.parametrize("suite", ["mbarrier", "fences", "bulk", "coherence"])
def test_the_cycle_of_a_forbidden_execution_is_there(suite: str) -> None:
    shown = 0
    for test in sorted((LITMUS / suite).glob("*.litmus"))[:8]:
        for graph in executions(test, forbidden=2, timeout=10):
            told = [edge for edge in graph.graph["cycle"] if not edge[2].endswith("^-1")]
            shown += len(told)
            assert all(graph.has_edge(*edge) for edge in told), (test, told)
    assert shown > 3


def test_an_execution_is_the_same_up_to_the_names_of_threads() -> None:
    """The two stale reads of store buffering mirror each other."""
    text = """PTX sb
{ .global .u32 x = 0; .global .u32 y = 0; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 r0, [y]; }
Q@cta 1 { st.relaxed.gpu.global.u32 [y], 1; ld.relaxed.gpu.global.u32 r0, [x]; }
exists (P:r0 == 0 /\\ Q:r0 == 0)
"""
    by_state = {tuple(g.graph["state"].values()): g for g in executions(text)}

    def alike(a: nx.MultiDiGraph, b: nx.MultiDiGraph) -> bool:
        return nx.is_isomorphic(
            a, b, node_match=lambda x, y: x["sets"] == y["sets"], edge_match=lambda x, y: set(x) == set(y)
        )

    assert alike(by_state[0, 1], by_state[1, 0])
    assert not alike(by_state[0, 0], by_state[1, 1])


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("seed", range(20))
def test_cheapest_paths_and_cycles(seed: int) -> None:
    """Against all walks of few edges."""
    from random import Random

    rng = Random(seed)
    n = 5
    rows = [rng.getrandbits(n) for _ in range(n)]
    cost = {(i, j): rng.randint(1, 9) for i in range(n) for j in bits.bits(rows[i])}
    for x, y in product(range(n), repeat=2):
        walks = [(x, *middle, y) for k in range(n) for middle in product(range(n), repeat=k)]
        steps = [list(pairwise(walk)) for walk in walks]
        prices = [sum(cost[e] for e in taken) for taken in steps if all(e in cost for e in taken)]
        found = cheapest(bits.network(rows), x, y, lambda u, v: cost[u, v])
        assert (None if found is None else found[0]) == min(prices, default=None)
        if found is not None:
            assert (found[1][0][0], found[1][-1][1]) == (x, y)
            assert sum(cost[e] for e in found[1]) == found[0]
