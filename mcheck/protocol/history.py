"""Who touched which bytes: the accesses of an object that a later one may still race with.

Every object is cut into runs of bytes that no access so far has split. A record leaves a run when a later one stands
for it: whatever comes after the later one also comes after the earlier one, with the same visibility.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from mcheck.graph.event import Event
from mcheck.protocol.clocks import Key, Vector

Lanes = int | tuple[int, int] | None
"""Which lane of an agent touched a byte: the lane's number; (address, stride) if lane k touched the k-th stride from
the address; ``None`` for all of them."""


@dataclass(slots=True, eq=False)
class Record:
    """An access, or all accesses of one instruction by the lanes of an agent.

    ``done`` are (agent, step) of the waits of its group, ``signals`` (component of an mbarrier, phase) of its
    completion signals; an asynchronous access that has neither is in flight. ``spaces`` are the kinds of coverage
    that reach it.
    """

    agent: int
    step: int
    lanes: Lanes
    event: Event
    write: bool
    proxy: str
    asynchronous: bool
    cp_async: bool
    strong: bool
    cta: int
    spaces: tuple[object, ...]
    bars: tuple[int, ...] = ()
    done: list[tuple[int, int]] = field(default_factory=list)
    signals: list[tuple[int, int]] = field(default_factory=list)
    observers: list[tuple[int, int]] = field(default_factory=list)
    position: int = 0
    of_warp: bool = False
    """Whether the lanes of the warp made it together, so that each of them may wait for it."""


@dataclass(frozen=True, slots=True)
class View:
    """Who looks at the records: an agent at a step (of its own accesses it knows those up to ``step``), its vectors.

    ``fenced`` holds, by kind of coverage, the step of the agent's own latest fence.
    """

    agent: int
    step: int
    single: bool
    causal: Vector
    coverage: dict[Key, Vector]
    fenced: dict[Key, int]

    def before(self, record: Record, lanes: Lanes) -> bool:
        """Whether the record is over before what the viewer does, by causality."""
        causal = self.causal
        if record.asynchronous:
            for component, phase in record.signals:
                if causal[component] > phase:
                    return True
            for agent, step in record.done:
                if causal[agent] >= step or (agent == self.agent and step <= self.step and self._mine(record, lanes)):
                    return True
            return False
        agent = record.agent
        if causal[agent] >= record.step:
            return True
        if agent == self.agent and record.step <= self.step and self._mine(record, lanes):
            return True
        for space in record.spaces:
            vector = self.coverage.get(("cr", space))
            if vector is not None and vector[agent] >= record.step:
                return True
        return any(causal[a] >= step or (a == self.agent and step <= self.step) for a, step in record.observers)

    def covered(self, record: Record, lanes: Lanes, key: Key) -> bool:
        """Whether a fence of kind ``key`` lies after the record on the way to the viewer."""
        vector = self.coverage.get(key)
        own = self.fenced.get(key, -1)
        if vector is None and own < 0:
            return False
        if record.asynchronous:
            if vector is not None and any(vector[c] > phase for c, phase in record.signals):
                return True
            return any(
                (vector is not None and vector[a] >= s) or (a == self.agent and s <= own and self._mine(record, lanes))
                for a, s in record.done
            )
        if vector is not None and vector[record.agent] >= record.step:
            return True
        return record.agent == self.agent and record.step <= own and self._mine(record, lanes)

    def _mine(self, record: Record, lanes: Lanes) -> bool:
        """Whether the same lane made the record (PTX ISA 8.3: program order is that of a thread)."""
        return self.single or record.of_warp or (lanes is not None and lanes == record.lanes)


@dataclass(slots=True)
class History:
    """The records of one object, by byte: ``starts`` are the boundaries, ``cells`` what was done in between."""

    starts: list[int]
    cells: list[list[Record]]
    end: int

    @staticmethod
    def of(base: int, size: int) -> History:
        """The history of an object that nobody has touched."""
        return History([base], [[]], base + size)

    def cut(self, low: int, high: int) -> range:
        """The cells of the bytes from ``low`` to ``high``, cut so that they are covered exactly."""
        first = self._split(low)
        last = self._split(high)
        return range(first, last)

    def _split(self, at: int) -> int:
        """The index of the cell that starts at ``at``."""
        starts = self.starts
        k = bisect_right(starts, at) - 1
        if at >= self.end:
            return len(starts)
        if k < 0:
            return 0
        if starts[k] == at:
            return k
        starts.insert(k + 1, at)
        self.cells.insert(k + 1, list(self.cells[k]))
        return k + 1


def stands_for(new: Record, old: Record, view: View) -> bool:
    """Whether ``new`` may replace ``old`` in a cell that it covers: nothing will race with ``old`` alone any more."""
    if old.write and not new.write:
        return False
    if new.asynchronous:
        if not old.asynchronous or old.proxy != new.proxy or old.cp_async != new.cp_async:
            return False
        if new.bars:
            return bool(old.bars) and set(new.bars) <= set(old.bars) and view.before(old, new.lanes)
        return old.agent == new.agent and old.lanes == new.lanes and not old.bars and bool(old.done)
    if old.asynchronous:
        return False  # a race with a copy is of another kind, and one of different sizes too
    if (old.event.address, old.event.size) != (new.event.address, new.event.size):
        return False
    if new.strong and (new.write or not _as_strong(old, new)):
        # A strong write may be observed, which puts it, and not what precedes it, before what its observer does next;
        # and what is morally strong with the new one may race with the old one.
        return False
    if view.causal[old.agent] >= old.step:
        return True
    return old.agent == new.agent and (view.single or old.lanes == new.lanes)


def _as_strong(old: Record, new: Record) -> bool:
    a, b = old.event, new.event
    return old.strong and (a.scope, a.address, a.size) == (b.scope, b.address, b.size)


def lanes_overlap(a: Lanes, b: Lanes, low: int, high: int) -> bool:
    """Whether different lanes of one agent touch a common byte of a cell, one by ``a`` and one by ``b``."""
    if a is None or b is None:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    if a == b:
        return False
    return any(_lane(a, byte) != _lane(b, byte) for byte in range(low, high))


def _lane(lanes: int | tuple[int, int], byte: int) -> int:
    return lanes if isinstance(lanes, int) else (byte - lanes[0]) // lanes[1]
