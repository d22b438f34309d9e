"""The schedule of a finding as a picture: a column per role, time downwards, its accesses marked."""

from __future__ import annotations

from dataclasses import replace

from mcheck.events.execution_graph import Box, Column, Edge, Execution
from mcheck.findings.finding import Access, Finding
from mcheck.findings.trace import Step, StepPart, Trace

MOST_STEPS = 40
"""The maximum number of steps drawn of a schedule without a finding."""


def draw_timeline(finding: Finding, name: str, model: str) -> Execution | None:
    """The picture of a finding's trace; ``None`` if it is not a schedule."""
    if not finding.trace or finding.trace[0].number is None:
        return None
    roles = _roles(finding.trace)
    boxes = [_box(step, roles, k) for k, step in enumerate(finding.trace)]
    if finding.kind != "deadlock":
        boxes = _marked(boxes, roles, finding)
    if finding.kind != "race":
        boxes += _stops(boxes, roles, finding)
    return _drawn(name, model, roles, boxes)


def draw_schedule(trace: Trace, name: str, model: str) -> Execution | None:
    """The picture of the beginning of a schedule; ``None`` if it is empty."""
    shown = trace[:MOST_STEPS]
    roles = _roles(shown)
    return _drawn(name, model, roles, [_box(step, roles, k) for k, step in enumerate(shown)]) if shown else None


def _roles(trace: Trace) -> list[str]:
    return list(dict.fromkeys(step.thread for step in trace))


def _drawn(name: str, model: str, roles: list[str], boxes: list[Box]) -> Execution:
    columns = tuple(Column(role, "", k) for k, role in enumerate(roles))
    return Execution(name=name, model=model, state=(), columns=columns, boxes=tuple(boxes), edges=_edges(boxes))


def _box(step: Step, roles: list[str], row: int) -> Box:
    completes = step.part is StepPart.COMPLETES
    line = step.span.line if step.span is not None else 0
    return Box(
        name=str(step.number),
        kind="signal" if completes else step.kind,
        column=roles.index(step.thread),
        lines=(f"line {line}: completes" if completes else f"line {line}",),
        text=step.instruction,
        asynchronous=completes,
        line=line,
        row=row,
    )


def _marked(boxes: list[Box], roles: list[str], finding: Finding) -> list[Box]:
    """The last step of each access, to be marked."""
    out = list(boxes)
    for access in finding.accesses:
        line = access.span.line if access.span is not None else -1
        mine = [k for k, b in enumerate(boxes) if roles[b.column] == access.thread and b.line == line]
        issued = [k for k in mine if not boxes[k].asynchronous] or mine
        if issued:
            out[issued[-1]] = replace(out[issued[-1]], marked=True)
    return out


def _stops(boxes: list[Box], roles: list[str], finding: Finding) -> list[Box]:
    """Boxes for the blocked threads of a deadlock or the undefined operation, which are not steps; adds their roles."""
    out: list[Box] = []
    told = "waits forever" if finding.kind == "deadlock" else f"{finding.code}: undefined"
    for access in finding.accesses:
        line = access.span.line if access.span is not None else 0
        if access.thread not in roles:
            roles.append(access.thread)
        lane = roles.index(access.thread)
        last = next((b for b in reversed(boxes) if b.column == lane), None)
        if finding.kind == "undefined" and last is not None and last.line == line:
            continue  # already marked as the last step
        out.append(_stop(access, line, lane, told, len(boxes) + len(out), len(out)))
    return out


def _stop(access: Access, line: int, lane: int, told: str, row: int, number: int) -> Box:
    return Box(
        name="abcdefghijklmnopqrstuvwxyz"[number % 26],
        kind="stop",
        column=lane,
        lines=(f"line {line}: {told}",),
        text=access.instruction,
        marked=True,
        line=line,
        row=row,
    )


def _edges(boxes: list[Box]) -> tuple[Edge, ...]:
    """Edges: program order in each column, and from the issue of a copy to its completion."""
    out = []
    last: dict[int, int] = {}
    waiting: dict[tuple[int, int], list[int]] = {}
    for k, box in enumerate(boxes):
        key = (box.column, box.line)
        if box.asynchronous:
            if waiting.get(key):
                out.append(Edge(source=waiting[key].pop(0), target=k, kind="complete"))
            continue
        if box.column in last:
            out.append(Edge(source=last[box.column], target=k, kind="po"))
        last[box.column] = k
        waiting.setdefault(key, []).append(k)
    return tuple(out)
