"""Which threads of a cluster draw tiles together: all of them, those of a warp, or each by itself.

A team is some consecutive threads of a CTA of which one draws. Its threads hand what it draws to each other; what the
threads of another team draw is nothing to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.launch import Launch
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.pairs.reduction import NotReducible


@dataclass(frozen=True, slots=True)
class Teams:
    """The teams of a cluster: ``in_cta`` of each CTA, of so many lanes each."""

    lanes: int
    in_cta: int
    ctas: int
    width: int
    """The lanes of a CTA."""

    @property
    def count(self) -> int:
        """The number of teams."""
        return self.in_cta * self.ctas

    def of(self, lane: int) -> int:
        """The number of the team of a lane."""
        cta, inside = divmod(lane, self.width)
        return cta * self.in_cta + inside // self.lanes if self.count > 1 else 0

    def members(self, lane: int) -> NDArray[np.int64]:
        """The lanes of the team of a lane; some may not exist."""
        if self.count == 1:
            return np.arange(self.ctas * self.width)
        cta, inside = divmod(lane, self.width)
        first = cta * self.width + inside // self.lanes * self.lanes
        return np.arange(first, min(first + self.lanes, (cta + 1) * self.width))


def one_team(launch: Launch) -> Teams:
    """All threads of a cluster."""
    return Teams(launch.width, 1, 1, launch.width * prod(launch.cluster))


def find_teams(launch: Launch, drawers: Iterable[int]) -> Teams:
    """The teams in which these lanes draw. Raises ``NotReducible`` if there are none of equal size."""
    lanes, width, ctas = sorted(drawers), launch.width, prod(launch.cluster)
    if len(lanes) == 1:
        return one_team(launch)
    threads, in_cta = prod(launch.block), len(lanes) // ctas
    if in_cta == threads:
        found = Teams(1, threads, ctas, width)
    else:
        warps = -(-width // WARP // max(in_cta, 1))
        found = Teams(warps * WARP, in_cta, ctas, width)
    if [found.of(lane) for lane in lanes] != list(range(found.count)):
        raise NotReducible("several threads of a cluster draw, but not one of each warp, or each thread")
    return found
