"""The assumption that lanes of a warp that execute one statement stay together (open question Q25).

The n-th execution of a statement by one lane and by another are one where both execute it equally often, as far as they
get. What a lane has waited for by then, its branches and waits with it, comes before all that the others do afterwards.
That orders time, as ``meet``, and no memory; and a lane that stays at the statement forever keeps the others there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

from mcheck.base.errors import Span
from mcheck.cat.tags import Tag
from mcheck.events.choices.candidate import Choice, Option
from mcheck.events.event import Event, Path
from mcheck.events.structure import Structure

Statement = tuple[str, int, int]
"""The file, the line and the column."""


def converge_lanes(s: Structure) -> list[Choice] | None:
    """The synchronisations of the lanes at their statements, ``None`` if a lane has left one at which another stays."""
    warps: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for path in s.paths:
        warps[s.program.threads[path.thread].place.own_warp].append(path)
    pairs: dict[tuple[int, int], None] = {}
    for lanes in warps.values():
        executed = {path.thread: _executions(path) for path in lanes} if len(lanes) > 1 else {}
        for a, b in permutations(lanes if executed else (), 2):
            for x, y in _one(a, executed[a.thread], b, executed[b.thread]):
                after = _after(b, y)
                if _is_stuck_at(a, x) and (after or b.end == "end"):
                    return None
                sources = [n for c in _observations(a, x) for n in s.nodes_of[c.uid]]
                pairs.update(((m, n), None) for m in sources for e in after for n in s.nodes_of[e.uid])
    return [Choice("barrier", [Option((("meet", tuple(pairs)),))], rank=0)] if pairs else []


def _one(
    a: Path, ours: dict[Statement, list[Event]], b: Path, theirs: dict[Statement, list[Event]]
) -> Iterator[tuple[Event, Event]]:
    """The pairs of executions by two lanes that are the same warp-wide execution."""
    for statement in ours.keys() & theirs.keys():
        mine, yours = ours[statement], theirs[statement]
        fewer = a if len(mine) < len(yours) else b
        if len(mine) == len(yours) or fewer.end != "end":
            yield from zip(mine, yours, strict=False)


def _executions(path: Path) -> dict[Statement, list[Event]]:
    """The last event of each execution of the statements, in order."""
    found: dict[Statement, dict[int, Event]] = defaultdict(dict)
    for event in path.events:
        span = event.op.span
        if event.order is not None and span is not None and not event.tags & {Tag.START, Tag.EXIT}:
            found[_place(span)][event.instruction] = event
    return {statement: list(events.values()) for statement, events in found.items()}


def _place(span: Span) -> Statement:
    return span.path, span.line, span.column


def _after(path: Path, event: Event) -> list[Event]:
    """The events of a lane after an instruction, without those of copies that it has issued."""
    return [e for e in path.events if e.order is not None and e.instruction > event.instruction]


def _is_stuck_at(path: Path, event: Event) -> bool:
    """Whether a lane stays at an instruction forever."""
    return path.end == "stuck" and not _after(path, event) and (event.uid in path.stuck or Tag.BLOCKED in event.tags)


def _observations(path: Path, event: Event) -> list[Event]:
    """The events that a lane has waited for, or branched on, up to an instruction."""
    later = next((e.ctrl for e in _after(path, event)), event.ctrl)
    return [e for e in path.events if e.uid in later and e.instruction <= event.instruction]
