"""The schedule behind a finding as a picture: a lane per role, time downwards, the accesses in question marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mcheck.findings.finding import Finding
from mcheck.graph.execution import Box, Column, Edge, Execution

if TYPE_CHECKING:
    from mcheck.protocol.schedule import Step

MOST_STEPS = 40
"""Of a schedule without a finding, so many steps are drawn."""
_CELL = re.compile(r"(?P<line>\d+): (?P<done>\(completes\) )?(?P<text>.*)$")
_KINDS = (
    (r"await|mbarrier\.(test|try)_wait|wait_group|wait_all", "wait"),
    (r"mbarrier\.", "mbarrier"),
    (r"fence\.proxy", "proxy-fence"),
    (r"fence|membar", "fence"),
    (r"bar\.|barrier\.", "barrier"),
    (r"cp\.|wgmma|commit", "issue"),
    (r"ld\.|ld ", "read"),
    (r"st\.|st ", "write"),
    (r"atom|red\.", "update"),
)


def timeline(finding: Finding, name: str, model: str, source: str) -> Execution | None:
    """The lanes of a finding's trace, ``None`` where the trace is no table of lanes."""
    if len(finding.trace) < 2 or not finding.trace[0].startswith("step "):
        return None
    starts = [m.start() for m in re.finditer(r"\S+", finding.trace[0])][1:]
    roles = [finding.trace[0][a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    lines = source.splitlines()
    boxes: list[Box] = []
    for text in finding.trace[1:]:
        step = text.split(None, 1)[0]
        if step == "...":
            continue
        begin = len(step) + text.index(step)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        found = _CELL.match(text[begin:].strip())
        if begin not in starts or found is None:
            return None
        lane = starts.index(begin)
        boxes.append(_box(step, lane, int(found["line"]), bool(found["done"]), len(boxes), lines))
    if finding.kind != "deadlock":
        boxes = _marked(boxes, roles, finding)
    if finding.kind != "race":
        boxes += _stops(boxes, roles, finding, lines)
    columns = tuple(Column(role, "", k) for k, role in enumerate(roles))
    return Execution(
        name=name,
        model=model,
        state=(),
        columns=columns,
        boxes=tuple(boxes),
        edges=_edges(boxes),
        axiom=None,
    )


def run(steps: Sequence[Step], name: str, model: str, source: str) -> Execution | None:
    """The beginning of a schedule; ``None`` if there is none."""
    if not steps:
        return None
    roles = list(dict.fromkeys(s.lane for s in steps[:MOST_STEPS]))
    lines = source.splitlines()
    boxes = [
        _box(str(k + 1), roles.index(s.lane), s.line, bool(s.note), k, lines) for k, s in enumerate(steps[:MOST_STEPS])
    ]
    columns = tuple(Column(role, "", k) for k, role in enumerate(roles))
    return Execution(name=name, model=model, state=(), columns=columns, boxes=tuple(boxes), edges=_edges(boxes))


def _box(step: str, lane: int, line: int, done: bool, row: int, lines: list[str]) -> Box:
    text = lines[line - 1].strip().split("//")[0].rstrip(" ;") if 0 < line <= len(lines) else ""
    kind = "signal" if done else next((k for p, k in _KINDS if re.search(p, text)), "issue")
    told = f"line {line}: completes" if done else f"line {line}"
    return Box(name=step, kind=kind, column=lane, lines=(told,), text=text, asynchronous=done, line=line, row=row)


def _marked(boxes: list[Box], roles: list[str], finding: Finding) -> list[Box]:
    """The last step of each access is marked."""
    out = list(boxes)
    for access in finding.accesses:
        line = access.span.line if access.span is not None else -1
        mine = [k for k, b in enumerate(boxes) if roles[b.column] == access.thread and b.line == line]
        issued = [k for k in mine if not boxes[k].asynchronous] or mine
        if issued:
            out[issued[-1]] = replace(out[issued[-1]], marked=True)
    return out


def _stops(boxes: list[Box], roles: list[str], finding: Finding, lines: list[str]) -> list[Box]:
    """Where the threads of a deadlock stand, or the undefined operation, which are no steps; adds roles without any."""
    out: list[Box] = []
    told = "waits for ever" if finding.kind == "deadlock" else f"{finding.code}: undefined"
    for access in finding.accesses:
        line = access.span.line if access.span is not None else 0
        if access.thread not in roles:
            roles.append(access.thread)
        lane = roles.index(access.thread)
        last = next((b for b in reversed(boxes) if b.column == lane), None)
        if finding.kind == "undefined" and last is not None and last.line == line:
            continue  # it is the last step, and marked
        name = "abcdefghijklmnopqrstuvwxyz"[len(out) % 26]
        box = _box(name, lane, line, False, len(boxes) + len(out), lines)
        text = box.text or access.instruction
        out.append(replace(box, kind="stop", lines=(f"line {line}: {told}",), text=text, marked=True))
    return out


def _edges(boxes: list[Box]) -> tuple[Edge, ...]:
    """Program order in each lane, and from the issue of a copy to its completion."""
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
