"""Clusters that are executed alone: in what time, and which bytes they write whose contents the launch gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import share_reason
from mcheck.frontend.ptx.known_contents import Memory
from mcheck.simt.grid.pairs.cluster_accesses import Execution
from mcheck.simt.grid.pairs.reduction import NotReducible

TRIES = 5
"""How often the contents of memory are forgotten that clusters turn out to write."""
CLUSTER_SECONDS = 5.0
"""Maximum time to execute one cluster: a loop may wait for others in a way that is not recognised."""


class Written(Exception):
    """Clusters write bytes of which the launch, or the module, gives the contents: the first ones."""

    def __init__(self, written: list[tuple[Memory, int]]) -> None:
        super().__init__()
        self.written = written


@contextmanager
def within_one_cluster(limit: Limit) -> Iterator[Limit]:
    """The time to execute one cluster. Raises ``NotReducible`` if it is over."""
    within = limit.share(CLUSTER_SECONDS)
    try:
        yield within
    except TimeOut:
        limit.check()
        raise NotReducible(share_reason("executing one cluster", CLUSTER_SECONDS).what, late=True) from None


def given_and_written(execution: Execution, words: Sequence[range]) -> list[tuple[Memory, int]]:
    """The writes of an execution, but for those of these words, to bytes whose contents are known at first: the first
    one in each memory. Raises ``NotReducible`` if it writes memory that nobody knows.
    """
    out: list[tuple[Memory, int]] = []
    writes, places = execution.accesses.writes, execution.places
    low, high = execution.accesses.starts[writes], execution.accesses.ends[writes]
    for instance in places.memory.instances:
        mine = (low >= instance.base) & (low < instance.base + instance.object.size)
        for word in words:
            mine &= (low >= word.stop) | (high <= word.start)
        if not mine.any():
            continue
        if instance.base not in places.memories:
            raise NotReducible(f"clusters write {instance.object.name}")
        given = () if instance.base in places.assumed else places.contents.get(instance.base, ())
        unknown = np.frombuffer(given[1] if given else b"", np.uint8)
        known = np.concatenate([[0], np.cumsum(unknown == 0)])  # how many bytes up to one
        starts, ends = (np.minimum(at[mine] - instance.base, len(unknown)) for at in (low, high))
        told = known[ends] > known[starts]
        if told.any():
            out.append((places.memories[instance.base], int(starts[told].min())))
    return out
