"""The state of an agent: lanes of a warp that execute together (``mcheck.engines.protocol.analysis.lane_groups``)."""

from __future__ import annotations

from dataclasses import field

from mcheck.base.declared_state import (
    IN_OWNER,
    REFERENCE,
    REMADE,
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    listed,
    mapped,
    optional,
    row,
    state,
)
from mcheck.base.records import dataclass
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.sync_objects import BarrierState, Placement
from mcheck.engines.protocol.state.vector_clocks import Vector, raise_clock
from mcheck.events.emit import Emitter
from mcheck.events.thread_state import State
from mcheck.ir.ops import Op
from mcheck.semantics.terms import Uid


@dataclass(slots=True)
class Agent:
    """An agent: lanes that execute together, with their place in the code and their registers.

    Two of its threads, the ``representatives``, stand for all of them in the window: what holds of these two holds of
    any two. An agent with a ``single_representative`` has one, because no property of two lanes is needed
    (``mcheck.engines.protocol.analysis.representative_lanes``).
    """

    index: int
    threads: tuple[int, ...]
    lanes: list[State]
    emitters: list[Emitter]
    code: tuple[Op, ...]
    placement: Placement
    time: Vector
    pc: int = 0
    step: int = 0
    status: str = "run"
    blocked_on: object = None
    records_by_event: dict[tuple[int, Uid], Record] = field(default_factory=dict)
    tracked_counts: list[int] = field(default_factory=list)
    completed_counts: list[int] = field(default_factory=list)
    wgmma_fenced: bool = False
    """Whether a wgmma.fence was executed since its latest wgmma."""
    open_wgmma: list[Record] = field(default_factory=list)
    wgmma_groups: list[tuple[list[Record], Vector, int]] = field(default_factory=list)
    """Its committed wgmma groups: their reads, the time of the commit, and the events awaited by then."""
    commit_time: Vector | None = None
    """The time that is known once its latest tcgen05.commit has arrived."""
    pipe_records: list[Record] = field(default_factory=list)
    """The accesses that it has issued to the tensor core's pipe."""
    warp_synchronised: bool = False
    """Whether the lanes of its warp have synchronised for the aligned instruction that it executes next."""
    cluster_arrival: BarrierState | None = None
    last_barrier_arrivals: dict[int, int] = field(default_factory=dict)
    """For each agent, the step of its arrival at the barrier that this agent passed last."""
    loop_visits: dict[int, tuple[tuple[tuple[str, object], ...], int, int]] = field(default_factory=dict)
    loop_iterations: dict[int, int] = field(default_factory=dict)
    """How often each loop head was reached."""
    effect_count: int = 0
    polled_versions: dict[object, int] = field(default_factory=dict)
    spinning: bool = False
    exit_time: Vector | None = None
    aligned_count: int = 0
    """The number of aligned instructions executed so far."""
    single_representative: bool = False
    sources: list[dict[str, int]] = field(default_factory=list)
    """For each lane and register, the live reads that its value depends on."""
    latest_time: tuple[Vector, int, Vector] | None = None
    """What ``current_time`` said last, after the clock and the step for which it did."""

    @property
    def is_single_thread(self) -> bool:
        """Whether the agent is one thread."""
        return len(self.threads) == 1

    @property
    def representatives(self) -> tuple[int, ...]:
        """The threads that stand for the agent in the window."""
        return self.threads[: 1 if self.single_representative else 2]

    def current_time(self) -> Vector:
        """The agent's vector clock, its own steps included."""
        if self.latest_time is not None:
            clock, step, found = self.latest_time
            if clock is self.time and step == self.step:
                return found
        found = raise_clock(self.time, self.index, self.step)
        self.latest_time = self.time, self.step, found
        return found

    def known_time(self) -> Vector:
        """What each of its threads knows: of the steps of other lanes only those that it has synchronised with."""
        return self.current_time() if self.is_single_thread else self.time


RECORDS = listed(state("Record"))

declare_state(
    Agent,
    index=by.CONSTANT,
    threads=by.CONSTANT,
    lanes=Attribute(listed(state("State")), by.LANE_STATES),
    emitters=Attribute(REMADE, by.OF_PROGRAM),  # they read the tensor maps of their own machine
    code=by.CONSTANT,
    placement=by.CONSTANT,
    time=by.CLOCK,
    pc=Attribute(SHARED, by.PLACE),
    step=by.NUMBER,
    status=VALUE,
    blocked_on=Attribute(REFERENCE, by.BLOCKED_ON),
    records_by_event=Attribute(
        mapped(state("Record")), Unnamed("looked up for copies in flight, which are named with their accesses")
    ),
    tracked_counts=Attribute(SHALLOW, IN_OWNER),
    completed_counts=Attribute(SHALLOW, IN_OWNER),
    wgmma_fenced=VALUE,
    open_wgmma=Attribute(RECORDS, IN_OWNER),
    wgmma_groups=Attribute(listed(row(RECORDS, SHARED, SHARED)), by.WGMMA_GROUPS),
    commit_time=by.CLOCK,
    pipe_records=Attribute(RECORDS, by.ACCESS_SET),
    warp_synchronised=VALUE,
    cluster_arrival=Attribute(optional(state("BarrierState")), by.CLUSTER_ARRIVAL),
    last_barrier_arrivals=Attribute(SHALLOW, Unnamed("asked of atomics in tracked words, at which a proof gives up")),
    loop_visits=Attribute(SHALLOW, by.LOOP_STATE),
    loop_iterations=by.remembered(),
    effect_count=Attribute(SHARED, IN_OWNER),
    polled_versions=Attribute(SHALLOW, IN_OWNER),
    spinning=Attribute(SHARED, IN_OWNER),
    exit_time=by.CLOCK,
    aligned_count=Attribute(SHARED, by.ALIGNED_COUNT),
    single_representative=by.CONSTANT,
    sources=Attribute(listed(SHALLOW), by.SOURCES),
    latest_time=Attribute(SHARED, by.CACHE),
)
