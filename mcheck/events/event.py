"""Events of one thread's path, before bytes are split into chunks and before there are relations.

A memory event covers the whole footprint of one scalar access; ``mcheck.events.structure`` cuts it into chunks.
An asynchronous operation gives an ``ISSUE`` event in program order and memory events outside it (``order`` is ``None``)
that name their issue event; see the design of the model in docs/ and PTX ISA 8.9.1.1.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.ir.ops import Op
from mcheck.semantics.terms import Term, Uid

NO_UIDS: frozenset[Uid] = frozenset()


@dataclass(frozen=True, slots=True)
class MbarrierStep:
    """What an event does to an mbarrier object: the input of the phase assignment.

    ``kind``: init, inval, expect, complete, arrive, drop, increment (cp.async.mbarrier.arrive without .noinc), wait,
    pending.
    ``wait`` steps have ``parity`` or ``state`` (the term of a state token). ``fences`` counts the fences before it in
    its thread that no ``try_wait`` outlasts.
    """

    address: int
    kind: str
    count: int = 1
    tx: int | None = None
    no_complete: bool = False
    parity: int | None = None
    state: Term | None = None
    blocking: bool = False
    fences: int = 0


@dataclass(frozen=True, slots=True)
class BarrierStep:
    """A thread at a barrier: ``key`` names the barrier, ``count`` its threads (``None``: all of them).

    ``op_id`` identifies the instruction in its thread's code, ``statement`` its line and column, which the lanes of a
    warp share.
    """

    key: tuple[object, ...]
    kind: str
    count: int | None = None
    aligned: bool = True
    op_id: int = -1
    statement: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a path.

    ``tags`` are the names of the sets of cat that it belongs to. ``order`` is its place in program order (equal
    places are
    unordered), ``instruction`` numbers the dynamic instruction in its thread. ``block`` is the CTA that the access
    counts for
    in the proxy rules: the owner of the bytes for asynchronous accesses to shared memory, else the thread's CTA.
    """

    uid: Uid
    op: Op
    tags: frozenset[Tag]
    order: int | None
    instruction: int
    block: int
    address: int = 0
    size: int = 0
    virtual: int = 0
    value: Term = 0
    scope: str | None = None
    data: frozenset[Uid] = NO_UIDS
    addr: frozenset[Uid] = NO_UIDS
    ctrl: frozenset[Uid] = NO_UIDS
    rmw: Uid | None = None
    issue: Uid | None = None
    mbarrier: MbarrierStep | None = None
    barrier: BarrierStep | None = None
    spaces: frozenset[str] = field(default=frozenset())
    covered: tuple[int, int] | None = None


def ends_pending_waits(event: Event) -> bool:
    """Whether no ``try_wait`` outlasts an event: a fence that acquires, but ``fence.sc.cta`` (open questions, Q29)."""
    acquires = bool({Tag.ACQ, Tag.ACQ_REL} & event.tags) or (Tag.SC in event.tags and event.scope != "cta")
    return Tag.F in event.tags and acquires and Tag.RESTRICTED not in event.tags


@dataclass(frozen=True, slots=True)
class Misstep:
    """Undefined behaviour on a path, at event or operation ``op``."""

    code: str
    message: str | Phrase
    op: Op
    section: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """One control-flow path through a thread's code.

    ``end``: ``end``; ``cut`` (the unrolling bound was met); ``undefined`` (a misstep ended it); ``stuck`` (waits
    forever
    if the events ``stuck`` keep reading what they read). ``constraints`` are conditions with the truth value the path
    took.
    ``completes`` are the pairs (memory event of an asynchronous operation, wait that observes its completion through
    a group).
    ``known`` are the results that the path has fixed; ``unfinished`` the reads of shared memory that may outlive the
    thread.
    ``at`` is the operation at which the path stopped, ``pc`` its place in the code.
    ``tracked`` are the pairs (memory event, mbarrier event that signals its completion).
    """

    thread: int
    events: tuple[Event, ...]
    constraints: tuple[tuple[Term, bool], ...]
    registers: dict[str, Term]
    end: str = "end"
    stuck: tuple[Uid, ...] = ()
    misstep: Misstep | None = None
    completes: tuple[tuple[Uid, Uid], ...] = ()
    tracked: tuple[tuple[Uid, Uid], ...] = ()
    known: dict[Uid, int] = field(default_factory=dict)
    unfinished: tuple[Uid, ...] = ()
    at: Op | None = None
    pc: int = 0
