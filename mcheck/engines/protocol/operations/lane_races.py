"""Races between the lanes of one agent in one instruction."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Footprint
from mcheck.engines.protocol.operations.access_records import describe_access, make_record
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.problems import Problem
from mcheck.findings import catalogue
from mcheck.ir.ops import Op


def report_lane_conflict(m: Machine, agent: Agent, found: list[Footprint], op: Op, records: list[Record]) -> None:
    """Report writes of one instruction by different lanes to common bytes, if the model does not order the lanes."""
    ranges = sorted(((a, b, -1 if lanes is None else lanes) for _, a, b, lanes in found), key=lambda r: r[:2])
    bad: tuple[int, int] | None = None
    same = True
    for k, (low, high, lanes) in enumerate(ranges):
        if lanes == -1:
            bad = (low, high)
        elif k and ranges[k - 1][1] > low:
            bad = (low, min(high, ranges[k - 1][1]))
            same = ranges[k - 1][:2] == (low, high)
    if bad is None:
        return
    event = found[0][0]
    code = m.find_lane_flag(records[0], complete=same)
    if code is None or (code, op.span) in m.reported:
        return
    m.reported.add((code, op.span))
    first, second = (describe_access(m, _make_lane_record(m, agent, event, k), *bad) for k in (0, 1))
    entry = catalogue.get(code)
    said = (f"{entry.name.replace('-', ' ')} on {first.object}: lanes of {m.name(agent)} write the same bytes",)
    m.problems.append(
        Problem(code, said, (first, second), (agent.index,), len(m.trace), len(m.trace) - 1, (entry.fix,))
    )


def _make_lane_record(m: Machine, agent: Agent, event: object, lane: int) -> Record:
    return make_record(m, agent, event, lane)  # type: ignore[arg-type]
