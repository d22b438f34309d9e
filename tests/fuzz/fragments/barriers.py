"""Fragments: execution barriers of the CTA and of the cluster."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.fragments.plain import load, shared, store


def meet(b: Body) -> None:
    """An execution barrier."""
    choices = ["bar.sync 0;", "bar.sync 0;", "bar.arrive 1, 64;", "bar.sync 1, 64;", "bar.sync 1, 64;"]
    if b.clustered:
        choices += ["barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;"] * 4
        choices += ["barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;"]
    b.say(*b.random.choice(choices).split("\n"))


def gathering(b: Body) -> None:
    """A named barrier that some of the warps are enough for."""
    count = b.random.choices((64, 96), (12, 1))[0]
    b.random.choice((store, shared, load))(b)
    b.say(f"bar.{b.random.choices(('sync', 'arrive'), (5, 1))[0]} 1, {count};")
    if b.chance(0.4):
        b.random.choice((load, shared))(b)
