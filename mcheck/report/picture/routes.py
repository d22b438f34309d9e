"""Routing the edges between the boxes: straight if nothing is in between, otherwise along lanes.

A channel is the space right of a column, a gap the space below a row (gap -1: above the first). Edges are assigned to
lanes in them so that no two overlap; sizes are computed later.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.events.execution_graph import Edge, Execution
from mcheck.report.picture.grid import Grid


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's route. ``kind``: ``down`` (straight down a column), ``side`` (beside it), ``straight`` or ``around``.

    ``first`` and ``last`` are (channel, lane) of the vertical parts, ``across`` (gap, lane) of the horizontal one.
    """

    edge: Edge
    kind: str
    first: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)
    across: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Lanes:
    """Lanes with their intervals; an interval takes the first lane in which none overlaps it."""

    taken: dict[int, list[list[tuple[float, float]]]] = field(default_factory=dict)

    def take(self, where: int, start: float, end: float) -> int:
        """Take a lane for ``start..end`` in the channel or gap ``where``."""
        start, end = min(start, end), max(start, end)
        lanes = self.taken.setdefault(where, [])
        for k, lane in enumerate(lanes):
            if all(end < a or b < start for a, b in lane):
                lane.append((start, end))
                return k
        lanes.append([(start, end)])
        return len(lanes) - 1

    def count(self, where: int) -> int:
        """The number of lanes."""
        return len(self.taken.get(where, ()))


@dataclass(slots=True)
class Routing:
    """All routes, with the lanes that channels and gaps need and the channels that straight edges cross."""

    routes: list[Route]
    channels: Lanes
    gaps: Lanes
    crossed: dict[int, int]


def route(execution: Execution, grid: Grid) -> Routing:
    """Compute a route for every edge."""
    at = {(grid.column[k], grid.row[k]): k for k in range(len(execution.boxes))}
    channels, gaps, crossed = Lanes(), Lanes(), dict[int, int]()
    routes: list[Route] = []
    straight_down: set[tuple[int, int]] = set()

    def empty(columns: range, top: int, bottom: int) -> bool:
        return not any((c, r) in at for c in columns for r in range(min(top, bottom), max(top, bottom) + 1))

    def order(edge: Edge) -> tuple[bool, int, int, str]:
        length = abs(grid.row[edge.source] - grid.row[edge.target])
        return edge.kind != "po", length, edge.source, f"{edge.target:6} {edge.kind}"

    for edge in sorted(execution.edges, key=order):
        a, b = edge.source, edge.target
        (ca, ra), (cb, rb) = (grid.column[a], grid.row[a]), (grid.column[b], grid.row[b])
        if ca == cb:
            between = [r for c, r in at if c == ca and min(ra, rb) < r < max(ra, rb)]
            key = (min(a, b), max(a, b))
            if not between and key not in straight_down and not (ra > rb and edge.kind == "po"):
                straight_down.add(key)
                routes.append(Route(edge, "down"))
            else:
                routes.append(Route(edge, "side", first=(ca, channels.take(ca, ra, rb))))
            continue
        left, right = min(ca, cb), max(ca, cb)
        if empty(range(left + 1, right), ra, rb):
            for c in range(left, right):
                crossed[c] = crossed.get(c, 0) + 1
            routes.append(Route(edge, "straight"))
            continue
        here, there = (ca, cb - 1) if ca < cb else (ca - 1, cb)
        gap = rb - 1 if ra <= rb else rb
        level = gap + 0.5
        routes.append(
            Route(
                edge,
                "around",
                first=(here, channels.take(here, ra, level)),
                across=(gap, gaps.take(gap, here, there)),
                last=(there, channels.take(there, level, rb)),
            )
        )
    return Routing(routes, channels, gaps, crossed)
