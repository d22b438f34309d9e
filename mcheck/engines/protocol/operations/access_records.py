"""Access records: what the access history keeps of a memory event, and how findings show it."""

from __future__ import annotations

from mcheck.answers.step_text import text_of
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import LaneOwners, Lanes, Record, lane_bytes
from mcheck.engines.protocol.state.agent import Agent
from mcheck.events.event import Event
from mcheck.findings.finding import Access
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


def describe_access(m: Machine, record: Record, low: int, high: int) -> Access:
    """A record as findings show it: of lanes that are one agent, the one that accesses the byte ``low``."""
    event = record.event
    instance = m.program.memory.find(low)
    label, start = "", 0
    if instance is not None:
        label, start = instance.label, instance.base
    agent = m.agents[record.agent]
    lane: int | None = None
    if isinstance(record.lanes, int):
        lane = record.lanes
    elif isinstance(record.lanes, LaneOwners):
        lane = max(record.lanes.lane_at(low), 0)
    elif isinstance(record.lanes, tuple):
        lane = (low - record.lanes[0]) // record.lanes[1]
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
