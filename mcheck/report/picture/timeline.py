"""A finding as a picture: a lane per CTA or role, time downwards, its accesses marked.

Where the threads of a finding are in several CTAs, each CTA has a lane with its operations in their order, and what is
not shown of the schedule is folded into a lane between them. What a step has seen of another lane is an edge, and so is
the order that the accesses of a race lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mcheck.base.records import dataclass, replace
from mcheck.events.execution_graph import Box, Column, Edge, Execution
from mcheck.findings.finding import Access, Finding
from mcheck.findings.trace import Step, StepPart, Trace

MOST_STEPS = 40
"""The maximum number of steps drawn of a schedule without a finding."""
_PLACED = re.compile(r"(?:gpu(\d+)(?:\.|$))?(?:cta ?(\d+|\([\d, ]+\))(?:\.|$))?(.*)", re.IGNORECASE)
"""A thread or a CTA of a launch: ``gpu1.cta(2, 0, 0).warp0[0]``."""
_LANES = re.compile(r"(.*)\[(\d[\d., ]*)(?:…)?\]")
"""Lanes that execute as one: ``warp0[0..3, 16]``, the ends of a range included."""
_NUMBER = re.compile(r"\d+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of a picture, and by thread its lane and what it is called there."""

    titles: tuple[str, ...]
    places: dict[str, tuple[int, str]]
    by_cta: bool

    def lane(self, thread: str) -> int:
        """The lane of a thread."""
        return self.places[thread][0]

    def label(self, thread: str, text: str) -> str:
        """The text of a box, with the thread if its lane has several."""
        name = self.places[thread][1]
        return f"{name}, {text}" if name else text


def draw_timeline(finding: Finding, name: str, model: str) -> Execution | None:
    """The picture of a finding: its schedule, or two accesses if no more is known; ``None`` if neither is there."""
    if not finding.trace:
        return _draw_accesses(finding, name, model)
    if finding.trace[0].number is None:
        return None
    finding = _by_threads_of_schedule(finding)
    ended = () if finding.kind == "race" else finding.accesses
    lanes = _find_lanes([*(step.thread for step in finding.trace), *(access.thread for access in ended)])
    boxes = [_box(step, lanes, k) for k, step in enumerate(finding.trace)]
    if finding.kind != "deadlock":
        boxes = _marked(boxes, finding)
    edges = [*_program_order(finding.trace, boxes), *_observed(finding.trace, boxes), *_missing(boxes, finding)]
    if lanes.by_cta:
        lanes, boxes, edges = _folded(finding.trace, lanes, boxes, edges)
    if finding.kind != "race":
        boxes += _stops(boxes, lanes, finding)
        edges += _to_stops(boxes)
    return _drawn(name, model, lanes, boxes, edges)


def _by_threads_of_schedule(finding: Finding) -> Finding:
    """The finding with its accesses by the threads of its schedule: a lane belongs to those that execute as one."""
    threads = tuple(dict.fromkeys(step.thread for step in finding.trace))

    def holder(name: str) -> str:
        return name if name in threads else next((one for one in threads if _includes(one, name)), name)

    return replace(finding, accesses=tuple(replace(one, thread=holder(one.thread)) for one in finding.accesses))


def _includes(thread: str, lane: str) -> bool:
    """Whether a lane, or the first of several, is one of those of a thread."""
    group, one = _LANES.fullmatch(thread), _LANES.fullmatch(lane)
    if group is None or one is None or group[1] != one[1]:
        return False
    number = int(_NUMBER.findall(one[2])[0])
    ranges = ([int(n) for n in _NUMBER.findall(part)] for part in group[2].split(",") if part.strip())
    return any(ends[0] <= number <= ends[-1] for ends in ranges)


def draw_schedule(trace: Trace, name: str, model: str) -> Execution | None:
    """The picture of the beginning of a schedule; ``None`` if it is empty."""
    shown = trace[:MOST_STEPS]
    lanes = _find_lanes([step.thread for step in shown])
    boxes = [_box(step, lanes, k) for k, step in enumerate(shown)]
    return _drawn(name, model, lanes, boxes, _program_order(shown, boxes)) if shown else None


def _draw_accesses(finding: Finding, name: str, model: str) -> Execution | None:
    """Two accesses of which only the bytes are known, not the executions of their CTAs."""
    if finding.kind != "race" or len({access.thread for access in finding.accesses}) != 2:
        return None
    lanes = _find_lanes([access.thread for access in finding.accesses])
    boxes = [
        Box(
            name=_LETTERS[k],
            kind="issue" if access.asynchronous else access.access,
            column=lanes.lane(access.thread),
            lines=(lanes.label(access.thread, f"line {access.line or 0}"), f"{access.access}s {access.place}"),
            text=access.instruction,
            marked=True,
            line=access.line or 0,
        )
        for k, access in enumerate(finding.accesses[:2])
    ]
    return replace(_drawn(name, model, lanes, boxes, _missing(boxes, finding)), subject="two accesses")


def _find_lanes(threads: Iterable[str]) -> Lanes:
    """A lane per CTA, in the order of their coordinates, if there are several; else one per thread, by appearance."""
    names = list(dict.fromkeys(threads))
    members: dict[tuple[str, str], list[str]] = {}
    for name in names:
        gpu, cta, _ = _parts(name)
        members.setdefault((gpu, cta), []).append(name)
    if len(members) < 2 or ("", "") in members:
        return Lanes(tuple(names), {name: (k, "") for k, name in enumerate(names)}, by_cta=False)
    titles: list[str] = []
    places: dict[str, tuple[int, str]] = {}
    for k, (gpu, cta) in enumerate(sorted(members, key=lambda at: (at[0], _coordinates(at[1])))):
        title = ", ".join([*([f"GPU {gpu}"] if gpu else ()), *([f"CTA {cta}"] if cta else ())])
        own = {name: _parts(name)[2] for name in members[gpu, cta]}
        alone = len(own) == 1
        titles.append(": ".join(filter(None, (title, *own.values()))) if alone else title)
        places |= {name: (k, "" if alone else thread) for name, thread in own.items()}
    return Lanes(tuple(titles), places, by_cta=True)


def _parts(name: str) -> tuple[str, str, str]:
    """The GPU, the CTA and the thread that a name says; empty where it does not."""
    found = _PLACED.fullmatch(name)
    return (found[1] or "", found[2] or "", found[3]) if found else ("", "", name)


def _coordinates(cta: str) -> list[int]:
    """The coordinates of a CTA, z first, as the grid is counted."""
    return [int(n) for n in reversed(_NUMBER.findall(cta))]


def _drawn(name: str, model: str, lanes: Lanes, boxes: Sequence[Box], edges: Iterable[Edge]) -> Execution:
    columns = tuple(Column(title, "", k) for k, title in enumerate(lanes.titles))
    return Execution(name=name, model=model, state=(), columns=columns, boxes=tuple(boxes), edges=tuple(edges))


def _box(step: Step, lanes: Lanes, row: int) -> Box:
    completes = step.part is StepPart.COMPLETES
    line = step.span.line if step.span is not None else 0
    return Box(
        name=str(step.number),
        kind="signal" if completes else step.kind,
        column=lanes.lane(step.thread),
        lines=(lanes.label(step.thread, f"line {line}: completes" if completes else f"line {line}"),),
        text=step.instruction,
        asynchronous=completes,
        line=line,
        row=row,
    )


def _marked(boxes: list[Box], finding: Finding) -> list[Box]:
    """The last step of each access, to be marked."""
    out = list(boxes)
    for access in finding.accesses:
        line = access.span.line if access.span is not None else -1
        mine = [k for k, step in enumerate(finding.trace) if step.thread == access.thread and boxes[k].line == line]
        issued = [k for k in mine if not boxes[k].asynchronous] or mine
        if issued:
            out[issued[-1]] = replace(out[issued[-1]], marked=True)
    return out


def _program_order(trace: Trace, boxes: Sequence[Box]) -> list[Edge]:
    """Edges: program order of each thread, and from the issue of a copy to its completion."""
    out = []
    last: dict[str, int] = {}
    waiting: dict[tuple[str, int], list[int]] = {}
    for k, (step, box) in enumerate(zip(trace, boxes, strict=True)):
        key = (step.thread, box.line)
        if box.asynchronous:
            if waiting.get(key):
                out.append(Edge(source=waiting[key].pop(0), target=k, kind="complete"))
            continue
        if step.thread in last:
            out.append(Edge(source=last[step.thread], target=k, kind="po"))
        last[step.thread] = k
        waiting.setdefault(key, []).append(k)
    return out


def _observed(trace: Trace, boxes: Sequence[Box]) -> list[Edge]:
    """Edges from steps to those of other lanes that saw them."""
    at = {step.number: k for k, step in enumerate(trace)}
    pairs = [(at[number], k) for k, step in enumerate(trace) for number in step.observes if number in at]
    return [Edge(source=j, target=k, kind="observed") for j, k in pairs if boxes[j].column != boxes[k].column]


def _missing(boxes: Sequence[Box], finding: Finding) -> list[Edge]:
    """The edge between the two accesses of a race."""
    marked = [k for k, box in enumerate(boxes) if box.marked]
    if finding.kind != "race" or len(marked) != 2:
        return []
    return [Edge(source=marked[0], target=marked[1], kind="race", both=True)]


def _folded(
    trace: Trace, lanes: Lanes, boxes: Sequence[Box], edges: Sequence[Edge]
) -> tuple[Lanes, list[Box], list[Edge]]:
    """With a lane behind the first one for the steps that are not shown, a box for each stretch of them."""
    if not any(step.skipped for step in trace):
        return lanes, list(boxes), list(edges)
    out: list[Box] = []
    moved: list[int] = []
    for step, box in zip(trace, boxes, strict=True):
        if step.skipped and step.number is not None:
            first, last = step.number - step.skipped, step.number - 1
            told = f"{step.skipped} steps" if step.skipped > 1 else "1 step"
            name = f"{first}-{last}" if step.skipped > 1 else str(first)
            out.append(Box(name=name, kind="omitted", column=1, lines=(told,), text="not shown", row=len(out)))
        moved.append(len(out))
        out.append(replace(box, column=box.column + (box.column > 0), row=len(out)))
    places = {thread: (lane + (lane > 0), name) for thread, (lane, name) in lanes.places.items()}
    titles = (lanes.titles[0], "others", *lanes.titles[1:])
    shifted = [replace(edge, source=moved[edge.source], target=moved[edge.target]) for edge in edges]
    return Lanes(titles, places, by_cta=True), out, shifted


def _stops(boxes: Sequence[Box], lanes: Lanes, finding: Finding) -> list[Box]:
    """Boxes for the blocked threads of a deadlock or the undefined operation, which are not steps."""
    out: list[Box] = []
    told = "waits forever" if finding.kind == "deadlock" else f"{finding.code}: undefined"
    for access in finding.accesses:
        line = access.span.line if access.span is not None else 0
        lane = lanes.lane(access.thread)
        last = next((b for b in reversed(boxes) if b.column == lane), None)
        if finding.kind == "undefined" and last is not None and last.line == line:
            continue  # already marked as the last step
        out.append(_stop(access, line, lanes, told, len(boxes) + len(out), len(out)))
    return out


def _stop(access: Access, line: int, lanes: Lanes, told: str, row: int, number: int) -> Box:
    return Box(
        name=_LETTERS[number % 26],
        kind="stop",
        column=lanes.lane(access.thread),
        lines=(lanes.label(access.thread, f"line {line}: {told}"),),
        text=access.instruction,
        marked=True,
        line=line,
        row=row,
    )


def _to_stops(boxes: Sequence[Box]) -> list[Edge]:
    """Program order from the last step of a lane to where it stops."""
    out = []
    last: dict[int, int] = {}
    for k, box in enumerate(boxes):
        if box.kind == "stop" and box.column in last:
            out.append(Edge(source=last[box.column], target=k, kind="po"))
        if not box.asynchronous:
            last[box.column] = k
    return out
