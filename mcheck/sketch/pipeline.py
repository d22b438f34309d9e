"""A ring of slots between a producer and its consumers, as kernels build it from full and empty mbarriers."""

from __future__ import annotations

from mcheck.sketch.build import Sketch
from mcheck.sketch.role import Role
from mcheck.sketch.text import Ref


class Pipeline:
    """``stages`` slots of ``size`` bytes each. ``consumers``: the arrivals that hand a slot back.

    The producer calls ``acquire``, ``load`` for round k; a consumer ``wait``, reads ``slot(k)``, then ``release``.
    """

    def __init__(self, sketch: Sketch, name: str, *, stages: int, size: int, consumers: int) -> None:
        self.stages, self.size, self.consumers = stages, size, consumers
        self.buffer = sketch.array(f"{name}_buf", stages, size)
        self.full = sketch.mbarriers(f"{name}_full", stages)
        self.empty = sketch.mbarriers(f"{name}_empty", stages)

    def init(self, t: Role) -> None:
        """One thread initialises all barriers; the others need a barrier behind it."""
        for stage in range(self.stages):
            t.init(self.full[stage], 1)
            t.init(self.empty[stage], self.consumers)

    def slot(self, k: int) -> Ref:
        """The buffer of round ``k``."""
        return self.buffer[k % self.stages]

    def acquire(self, t: Role, k: int) -> None:
        """The producer waits until the slot is free."""
        t.wait(self.empty[k % self.stages], (k // self.stages) % 2 ^ 1)

    def load(self, t: Role, k: int, source: Ref) -> None:
        """The producer announces and issues the copy of round ``k``."""
        full = self.full[k % self.stages]
        t.arrive_expect_tx(full, self.size)
        t.bulk_load(self.slot(k), source, self.size, full)

    def wait(self, t: Role, k: int) -> None:
        """A consumer waits for the data of round ``k``."""
        t.wait(self.full[k % self.stages], (k // self.stages) % 2)

    def release(self, t: Role, k: int, *, fence: bool = True, elected: bool = True) -> None:
        """A consumer hands the slot back: a proxy fence for its generic reads, then one arrive per warp (or per
        thread).
        """
        if fence:
            t.fence_proxy_async("shared::cta")
        empty = self.empty[k % self.stages]
        if elected:
            t.syncwarp()
            with t.elected():
                t.arrive(empty)
        else:
            t.arrive(empty)
