"""A ring buffer between a producer and its consumers, with full and empty mbarriers."""

from __future__ import annotations

from mcheck.sketch.build import Sketch
from mcheck.sketch.role import Role
from mcheck.sketch.text import Ref


class Pipeline:
    """A ring of ``stages`` slots of ``size`` bytes each. ``consumers``: the number of arrivals that release a slot.

    In iteration k the producer calls ``acquire`` and ``load``; a consumer calls ``wait``, reads ``slot(k)``, then
    calls ``release``.
    """

    def __init__(self, sketch: Sketch, name: str, *, stages: int, size: int, consumers: int) -> None:
        self.stages, self.size, self.consumers = stages, size, consumers
        self.buffer = sketch.array(f"{name}_buf", stages, size)
        self.full = sketch.mbarriers(f"{name}_full", stages)
        self.empty = sketch.mbarriers(f"{name}_empty", stages)

    def init(self, t: Role) -> None:
        """Initialise all mbarriers, in one thread; the others need a barrier after it."""
        for stage in range(self.stages):
            t.init(self.full[stage], 1)
            t.init(self.empty[stage], self.consumers)

    def slot(self, k: int) -> Ref:
        """The slot of iteration ``k``."""
        return self.buffer[k % self.stages]

    def acquire(self, t: Role, k: int) -> None:
        """Wait until the slot is free, in the producer."""
        t.wait(self.empty[k % self.stages], (k // self.stages) % 2 ^ 1)

    def load(self, t: Role, k: int, source: Ref) -> None:
        """Announce and issue the copy of iteration ``k``, in the producer."""
        full = self.full[k % self.stages]
        t.arrive_expect_tx(full, self.size)
        t.bulk_load(self.slot(k), source, self.size, full)

    def wait(self, t: Role, k: int) -> None:
        """Wait for the data of iteration ``k``, in a consumer."""
        t.wait(self.full[k % self.stages], (k // self.stages) % 2)

    def release(self, t: Role, k: int, *, fence: bool = True, elected: bool = True) -> None:
        """Release the slot, in a consumer: a proxy fence for its generic reads, then an arrive per warp (or thread)."""
        if fence:
            t.fence_proxy_async("shared::cta")
        empty = self.empty[k % self.stages]
        if elected:
            t.syncwarp()
            with t.elected():
                t.arrive(empty)
        else:
            t.arrive(empty)
