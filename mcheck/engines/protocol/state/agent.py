"""Lanes that run together, as an execution has them (``mcheck.engines.protocol.analysis.lane_groups`` says which lanes
do).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.sync_objects import Place, Rendezvous
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
    place: Place
    time: Vector
    pc: int = 0
    step: int = 0
    status: str = "run"
    where: object = None
    of_event: dict[tuple[int, Uid], Record] = field(default_factory=dict)
    tracked: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    fenced: bool = False
    """Whether a wgmma.fence has come since its latest wgmma."""
    wgmma_open: list[Record] = field(default_factory=list)
    wgmma_groups: list[tuple[list[Record], Vector, int]] = field(default_factory=list)
    """The reads of its committed groups of wgmma, when it committed them, and what it had waited for by then."""
    committed: Vector | None = None
    """What is over in time once its latest commit of tcgen05 has arrived."""
    piped: list[Record] = field(default_factory=list)
    """What it has issued to the pipe of the tensor core."""
    met: bool = False
    """Whether the lanes of its warp have met at an aligned instruction that it is about to carry out."""
    last_read: dict[int, int] = field(default_factory=dict)
    cluster_arrived: Rendezvous | None = None
    left: dict[int, int] = field(default_factory=dict)
    """At which step each agent had arrived at the barrier that this one has left last."""
    visits: dict[int, tuple[tuple[tuple[str, object], ...], int, int]] = field(default_factory=dict)
    rounds: dict[int, int] = field(default_factory=dict)
    """How often the heads of loops were come to."""
    effects: int = 0
    looked: dict[object, int] = field(default_factory=dict)
    spinning: bool = False
    exit_time: Vector | None = None
    aligned: int = 0
    """Aligned instructions executed so far."""
    lean: bool = False
    origin: list[dict[str, int]] = field(default_factory=list)
    """By lane and register, the live reads that its value depends on."""

    @property
    def single(self) -> bool:
        """Whether this is one thread."""
        return len(self.threads) == 1

    @property
    def shown(self) -> tuple[int, ...]:
        """The threads that stand for the agent in the window."""
        return self.threads[: 1 if self.lean else 2]

    def now(self) -> Vector:
        """The agent's time, its own steps included."""
        return raise_clock(self.time, self.index, self.step)
