"""What an execution of the model tells of the wait that an asynchronous operation lacks, for the message of RACE003."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.waits import Wait, closed_behind, completion, family_of, half, remark
from mcheck.candidates.prepared import Prepared
from mcheck.graph.event import Event
from mcheck.graph.structure import Node
from mcheck.graph.tags import Tag
from mcheck.program.ops import Branch, Commit, WaitGroup


def too_early(prepared: Prepared, pair: tuple[int, int]) -> str:
    """What waits for the operation of a group that another access of the pair comes too early for, and why a wait that
    is there does not; empty where the pair is another one, or nothing can be said.
    """
    s = prepared.s
    nodes = [s.nodes[k] for k in pair]
    issued = [n for n in nodes if n.source is not None and n.source.issue is not None and n.source.order is None]
    if len(issued) != 1:
        return ""
    old, (new,) = issued[0], (n for n in nodes if n is not issued[0])
    event, issue = old.source, s.events[old.source.issue] if old.source and old.source.issue else None
    if event is None or new.source is None or issue is None or issue.order is None or new.source.order is None:
        return ""
    if any(uid == event.uid for uid, _ in s.paths[old.thread].tracked):
        return ""  # an mbarrier tells of its completion
    same = old.thread == new.thread
    later = _closed_behind(prepared, old, issue, new.source if same else None)
    mechanism = completion(event.op, write=Tag.W in event.tags, later=later)
    remarks = half(event.op, _waits(prepared, old, issue), write=Tag.W in event.tags)
    if mechanism is None or new.source.op.span is None or (same and new.source.order < issue.order):
        return ""
    if same:
        return " ".join(filter(None, (f"{mechanism} before line {new.source.op.span.line}.", remarks, remark(later))))
    if not remarks:
        return ""
    line = new.source.op.span.line
    over = f"then hand over to line {line}: a barrier, or a release that is acquired."
    return f"{mechanism} in {s.thread(old).name}, {over} {remarks}"


def _waits(prepared: Prepared, old: Node, issue: Event) -> Iterator[Wait]:
    """The waits for groups that may have been meant for the operation: first those of its own thread behind it."""
    s = prepared.s
    paths = sorted(s.paths, key=lambda path: path.thread != old.thread)
    for path in paths:
        own = path.thread == old.thread
        for event in path.events:
            behind = event.order is not None and issue.order is not None and event.order > issue.order
            if isinstance(event.op, WaitGroup) and (behind or not own):
                name = s.program.threads[path.thread].name
                committed = _committed(prepared, old, event)
                yield Wait(op=event.op, thread=name, own=own, committed=committed)


def _closed_behind(prepared: Prepared, old: Node, issue: Event, new: Event | None) -> int | None:
    """How many groups are closed behind that of an operation before ``new``; none, if that is not known."""
    code = prepared.s.thread(old).code
    if new is not None and not any(isinstance(op, Branch) for op in code):
        return closed_behind(code[issue.instruction : new.instruction], issue.op)
    return 0 if _committed(prepared, old, None) else None


def _committed(prepared: Prepared, old: Node, before: Event | None) -> bool:
    """Whether the issuing thread closes a group behind the operation (and before an event), as its code stands."""
    assert old.source is not None
    code = prepared.s.thread(old).code
    first = next((k for k, op in enumerate(code) if op.span == old.source.op.span), len(code))
    last = len(code)
    if before is not None:
        last = next((k for k, op in enumerate(code) if k > first and op.span == before.op.span), len(code))
    family = family_of(old.source.op)
    return any(isinstance(op, Commit) and op.family == family for op in code[first:last])
