"""Access records: what the access history keeps of a memory event, and how findings show it."""

from __future__ import annotations

from mcheck.answers.step_text import text_of
from mcheck.cat.tags import Tag
from mcheck.effects.site import widened
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Lanes, Record, lane_at, lane_bytes
from mcheck.engines.protocol.state.agent import Agent
from mcheck.events.event import Event
from mcheck.findings.finding import Access
from mcheck.ir.expr import Lanes as PerLane
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.ops import BulkCopy


def make_record(m: Machine, agent: Agent, event: Event, lanes: Lanes) -> Record:
    """Create the record of a memory event."""
    tags = event.tags
    proxy = "ASYNC" if Tag.ASYNC in tags else "TMAP" if Tag.TMAP in tags else "GEN"
    spaces: tuple[object, ...]
    if Tag.SHARED in tags:
        spaces = ("shared", ("cta", (event.address - SHARED_BASE) // SHARED_WINDOW))
    else:
        spaces = ("global",) if Tag.GLOBAL in tags else ("other",)
    return Record(
        agent.index,
        agent.step,
        lanes,
        event,
        Tag.W in tags,
        proxy,
        event.order is None,
        Tag.CPASYNC in tags,
        spaces,
        position=len(m.trace) - 1,
    )


PROXY_NAMES = {"GEN": "generic", "ASYNC": "async", "TMAP": "tensormap"}


def describe_access(m: Machine, record: Record, low: int, high: int, other: Record | None = None) -> Access:
    """A record as findings show it: of lanes that are one agent, the one that accesses the byte ``low``; of several
    that do, one that is not also the lane of the ``other`` record, which it races with.
    """
    event = record.event
    instance = m.program.memory.find(low)
    label, start = "", 0
    if instance is not None:
        label, start = instance.label, instance.base
    agent = m.agents[record.agent]
    lane = None if record.lanes is None else lane_at(record.lanes, low)
    if lane == -1:
        lane = _one_of_several(m, record, low, other)
    first, last = lane_bytes(record.lanes, low) or (event.address, event.address + event.size)
    if not first <= low < last:
        first, last = low, high
    return Access(
        thread=m.name(agent, lane),
        instruction=text_of(event.op),
        span=event.op.span,
        object=label,
        bytes=(max(first, 0) - start, last - start),
        proxy=PROXY_NAMES[record.proxy],
        access="write" if record.write else "read",
        asynchronous=record.asynchronous,
        strong=Tag.WEAK not in event.tags or (isinstance(event.op, BulkCopy) and event.op.is_strong),
    )


def _one_of_several(m: Machine, record: Record, byte: int, other: Record | None) -> int:
    """Which lane to name of several that access a byte."""
    agent, op = m.agents[record.agent], record.event.op
    address = getattr(op, "address", None) or getattr(op, "dst" if record.write else "src", None)
    if not isinstance(address, PerLane):
        return 0
    at = [widened(address.values[m.program.threads[t].place.lane]) for t in agent.threads]
    start = max((a for a in at if a <= byte), default=byte)
    lanes = [lane for lane, a in enumerate(at) if a == start]
    theirs = lane_at(other.lanes, byte) if other is not None and other.agent == record.agent else None
    return next((lane for lane in lanes if lane != theirs), lanes[0] if lanes else 0)
