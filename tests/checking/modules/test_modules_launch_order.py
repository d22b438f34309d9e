"""The order of launches in a stream, against paths in the graph of their starts, waits, triggers and ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, cast

import networkx as nx
import pytest

from mcheck.base.budget import Limit
from mcheck.checking.modules.launches.launch_order import Order, StreamOrder
from mcheck.frontend.ptx.launch import Launch
from mcheck.simt.grid.launches.launch_accesses import LaunchFootprint

PUBLISHED, IN_TIME = "published", "in time"


@dataclass(frozen=True)
class Link:
    """A launch: whether it is programmatic, waits, and executes launch_dependents: before its wait (early), behind it,
    or behind it and a fence.
    """

    programmatic: bool
    waits: bool
    trigger: str

    @property
    def start(self) -> int:
        if not self.waits or self.trigger == "early":
            return Order.UNORDERED
        return Order.ORDERED if self.trigger == "fenced" else Order.OPEN


LINKS = [
    Link(programmatic, waits, trigger)
    for programmatic, waits, trigger in product((False, True), (False, True), ("early", "late", "fenced"))
    if waits or trigger == "early"
]


def graph(links: tuple[Link, ...]) -> nx.DiGraph:
    """What comes before what. An edge in time publishes nothing."""
    found = nx.DiGraph()
    for k, link in enumerate(links):
        found.add_edge(("start", k), ("end", k), how=PUBLISHED)
        found.add_edge(("start", k), ("trigger", k), how=IN_TIME)
        if link.waits:
            found.add_edge(("start", k), ("wait", k), how=PUBLISHED)
            found.add_edge(("wait", k), ("end", k), how=PUBLISHED)
            if link.trigger != "early":
                found.add_edge(("wait", k), ("trigger", k), how=PUBLISHED if link.trigger == "fenced" else IN_TIME)
        if k == 0:
            continue
        found.add_edge(("trigger", k - 1), ("start", k), how=PUBLISHED)
        if link.waits:
            found.add_edge(("end", k - 1), ("wait", k), how=PUBLISHED)
        if not link.programmatic:
            for earlier in range(k):
                for later in range(k, len(links)):  # the end of a launch publishes to all that start after it
                    found.add_edge(("end", earlier), ("start", later), how=PUBLISHED)
    return found


def order(of: nx.DiGraph, one: tuple[str, int], other: tuple[str, int]) -> Order:
    published = nx.DiGraph((a, b) for a, b, how in of.edges(data="how") if how == PUBLISHED)
    if one in published and other in published and nx.has_path(published, one, other):
        return Order.ORDERED
    return Order.OPEN if nx.has_path(of, one, other) else Order.UNORDERED


@pytest.mark.daily
@pytest.mark.parametrize(("length", "most"), [(2, 64), (3, 512), (4, 300), (6, 100)])
def test_chains(length: int, most: int) -> None:
    rng, seen = Random(length), set()
    every = product(LINKS, repeat=length) if len(LINKS) ** length <= most else None
    for links in every or [tuple(rng.choices(LINKS, k=length)) for _ in range(most)]:
        launches = cast(tuple[Launch, ...], links)
        stream = StreamOrder(launches, lambda k, links=links: footprint(links[k]), Limit(None))  # type: ignore[misc]
        wanted = graph(links)
        for second in range(length):
            for first in range(second):
                started = order(wanted, ("end", first), ("start", second))
                ended = order(wanted, ("end", first), ("end", second))
                assert stream.started_after(second, first) is started, (links, first, second)
                assert stream.ended_after(second, first) is ended, (links, first, second)
                seen.add((started, ended))
    if length > 2:
        assert len(seen) > 4


def footprint(link: Link) -> LaunchFootprint:
    """What the order of launches reads of a footprint."""

    @dataclass
    class Stub:
        waits: int
        start: int

    return cast(LaunchFootprint, cast(Any, Stub(Order.ORDERED if link.waits else Order.UNORDERED, link.start)))


def test_what_is_not_known_stays_open() -> None:
    links = (Link(False, False, "early"), *[Link(True, True, "fenced")] * 2)
    stream = StreamOrder(cast(tuple[Launch, ...], links), lambda _: None, Limit(None))
    assert stream.started_after(2, 0) is Order.OPEN
    assert stream.ended_after(1, 0) is Order.OPEN
    assert stream.ended_after(2, 0) is Order.OPEN
