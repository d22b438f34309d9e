"""clusterlaunchcontrol: the possible responses to a cancel request (PTX ISA 9.7.13.17).

Which cluster a request gets, and how often, is unknown. On a path, a number of responses give a cluster, one after the
other in the order of the grid, and all later ones give none. A response is 16 bytes, of which the first 8 hold
everything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.launch import Launch
from mcheck.isa.opcode import Opcode

MAX_WON = 2
"""Maximum number of clusters won on a path."""
_GIVEN = 1
_X, _Y, _Z = 1, 32, 48
"""Where the indices of the CTA begin; the first bit says that there is one."""


def following_clusters(launch: Launch, most: int) -> list[tuple[int, int, int]]:
    """The first CTAs of at most so many of the clusters after the executed one, in the order of the grid."""
    cluster = launch.cluster
    counts = [launch.grid[k] // cluster[k] for k in range(3)]
    x, y, z = (launch.first[k] // cluster[k] for k in range(3))
    at, every = x + counts[0] * (y + counts[1] * z), counts[0] * counts[1] * counts[2]
    found = []
    for n in range(at + 1, at + min(most + 1, every)):
        rest, i = divmod(n % every, counts[0])
        k, j = divmod(rest, counts[1])
        found.append((i * cluster[0], j * cluster[1], k * cluster[2]))
    return found


@dataclass(slots=True)
class CancelResponses:
    """The responses to the requests of a path: one for each of ``won``, then none."""

    won: tuple[tuple[int, int, int], ...] = ()
    request_count: int = 0

    def next_response(self) -> int:
        """The next response: its first eight bytes."""
        place = self.won[self.request_count] if self.request_count < len(self.won) else None
        self.request_count += 1
        return 0 if place is None else _GIVEN | place[0] << _X | place[1] << _Y | place[2] << _Z


def query_function(opcode: Opcode) -> Callable[[Word], tuple[Word, ...]] | None:
    """What ``query_cancel`` computes from a response; ``None`` for an unknown form."""
    fields = {"x": (_X, _Y - _X), "y": (_Y, _Z - _Y), "z": (_Z, 64 - _Z)}
    wanted: dict[str, tuple[tuple[int, int], ...]] = {
        "is_canceled": ((0, _X),),
        "get_first_ctaid": tuple(fields.values()),
    }
    wanted |= {f"get_first_ctaid::{axis}": (where,) for axis, where in fields.items()}
    asked = opcode.choice(wanted)
    if asked is None:
        return None
    found = wanted[asked]
    return lambda answer: tuple(answer >> np.uint64(at) & np.uint64((1 << bits) - 1) for at, bits in found)
