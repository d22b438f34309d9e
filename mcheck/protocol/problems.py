"""What an execution found, before it is put into words: the raw material of findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcheck.findings.finding import Access
from mcheck.graph.event import Event
from mcheck.program.ops import Op

if TYPE_CHECKING:
    from mcheck.protocol.history import Record
    from mcheck.protocol.machine import Agent, Machine

PROXY_NAMES = {"GEN": "generic", "ASYNC": "async", "TMAP": "tensormap"}


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding in the making. ``agents`` are those whose steps the trace should show, ``until`` the last step."""

    code: str
    message: str
    accesses: tuple[Access, ...]
    agents: tuple[int, ...]
    until: int
    since: int = 0
    missing: str = ""

    @staticmethod
    def of_operation(
        m: Machine, code: str, message: str, agent: Agent | None, op: Op, event: Event | None, missing: str = ""
    ) -> Problem:
        """Undefined behaviour of one operation."""
        who = m.name(agent) if agent is not None else ""
        access = Access(thread=who, instruction=text_of(op), span=op.span)
        if event is not None and event.mbarrier is not None:
            instance = m.program.memory.find(event.mbarrier.address)
            if instance is not None:
                start = event.mbarrier.address - instance.base
                access = Access(
                    thread=who, instruction=text_of(op), span=op.span, object=instance.label, bytes=(start, start + 8)
                )
        agents = () if agent is None else (agent.index,)
        text = f"{who}: {message}" if who else message
        return Problem(code, text, (access,), agents, len(m.trace), missing=missing)


def text_of(op: Op) -> str:
    """The instruction on one line."""
    return " ".join(op.text.split()) or type(op).__name__


def access_of(m: Machine, record: Record, low: int, high: int) -> Access:
    """A record as a finding shows it, cut to the bytes in question."""
    event = record.event
    instance = m.program.memory.find(low)
    label, start = "", 0
    if instance is not None:
        label, start = instance.label, instance.base
    agent = m.agents[record.agent]
    lane: int | None = None
    if isinstance(record.lanes, int):
        lane = record.lanes
    elif isinstance(record.lanes, tuple):
        lane = (low - record.lanes[0]) // record.lanes[1]
    first, last = (event.address, event.address + event.size)
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
    )
