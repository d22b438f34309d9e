"""Lanes that run together, as an execution has them (``mcheck.engines.protocol.analysis.lane_groups`` says which lanes
do).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.sync_objects import BarrierState, Placement
from mcheck.engines.protocol.state.vector_clocks import Vector, raise_clock
from mcheck.events.emit import Emitter
from mcheck.events.thread_state import State
from mcheck.ir.ops import Op
from mcheck.semantics.terms import Uid


@dataclass(slots=True)
class Agent:
    """Lanes that run together, and their place in the code.

    Two of them, ``shown``, stand for all in the window: what holds of the one and the other holds of any two. Of an
    agent that is ``lean`` one does, for which nothing has to hold of two
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
    """Whether a wgmma.fence has come since its latest wgmma."""
    open_wgmma: list[Record] = field(default_factory=list)
    wgmma_groups: list[tuple[list[Record], Vector, int]] = field(default_factory=list)
    """The reads of its committed groups of wgmma, when it committed them, and what it had waited for by then."""
    commit_time: Vector | None = None
    """What is over in time once its latest commit of tcgen05 has arrived."""
    pipe_records: list[Record] = field(default_factory=list)
    """What it has issued to the pipe of the tensor core."""
    warp_synchronized: bool = False
    """Whether the lanes of its warp have met at an aligned instruction that it is about to carry out."""
    last_read: dict[int, int] = field(default_factory=dict)
    cluster_arrival: BarrierState | None = None
    last_barrier_arrivals: dict[int, int] = field(default_factory=dict)
    """At which step each agent had arrived at the barrier that this one has left last."""
    loop_visits: dict[int, tuple[tuple[tuple[str, object], ...], int, int]] = field(default_factory=dict)
    loop_iterations: dict[int, int] = field(default_factory=dict)
    """How often the heads of loops were come to."""
    effect_count: int = 0
    polled_versions: dict[object, int] = field(default_factory=dict)
    spinning: bool = False
    exit_time: Vector | None = None
    aligned_count: int = 0
    """Aligned instructions executed so far."""
    single_representative: bool = False
    sources: list[dict[str, int]] = field(default_factory=list)
    """By lane and register, the live reads that its value depends on."""

    @property
    def is_single_thread(self) -> bool:
        """Whether this is one thread."""
        return len(self.threads) == 1

    @property
    def representatives(self) -> tuple[int, ...]:
        """The threads that stand for the agent in the window."""
        return self.threads[: 1 if self.single_representative else 2]

    def current_time(self) -> Vector:
        """The agent's time, its own steps included."""
        return raise_clock(self.time, self.index, self.step)
