"""Cheapest paths and cycles in a graph with edge costs computed on demand: Dijkstra's algorithm, by networkx."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

Price = Callable[[int, int], int | None]
"""What an edge costs; ``None`` for one that must not be taken."""


def cheapest(graph: nx.DiGraph, x: int, y: int, price: Price) -> tuple[int, list[tuple[int, int]]] | None:
    """The cheapest path of at least one edge from x to y, a cycle where these are one: its cost and its edges."""
    import networkx as nx

    start = object()  # stands for x where the path leaves it, so that a cycle has two ends

    def weight(u: Any, v: int, _: dict[str, Any]) -> int | None:
        return price(x if u is start else u, v)

    if x not in graph:
        return None
    graph.add_node(start)
    graph.add_edges_from((start, z) for z in list(graph.successors(x)))
    try:
        cost, nodes = nx.single_source_dijkstra(graph, start, y, weight=weight)
    except (nx.NetworkXNoPath, nx.NodeNotFound):
        return None
    finally:
        graph.remove_node(start)
    nodes[0] = x
    return cost, list(pairwise(nodes))
