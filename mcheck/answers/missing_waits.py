"""The wait or fence that a racing asynchronous operation lacks, for the message of RACE003."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.answers.async_waits import (
    ReadPhase,
    Wait,
    alternative_order_before_issue,
    count_closed_groups,
    explain_insufficient_wait,
    family_of,
    order_before_issue,
    order_before_wgmma,
    pending_groups_note,
    wait_for_completion,
)
from mcheck.cat.tags import Tag
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event
from mcheck.events.structure import Node
from mcheck.findings import catalogue
from mcheck.ir.ops import Branch, Commit, WaitGroup, Wgmma

HANDS_OVER = frozenset(("barrier", "syncbar", "phase", "complete"))
"""Relations that order one event before another."""


def missing_alias_fence(nodes: Sequence[Node]) -> str:
    """The fix for unordered accesses to the same bytes by two addresses (8.6, 8.10.6); empty if the address is the
    same.
    """
    events = [n.source for n in nodes if n.source is not None]
    if len({e.virtual - e.address for e in events}) < 2:
        return ""
    one, other = sorted(events, key=lambda e: (e.order is None, e.order or 0))
    first, second = (e.op.span.line if e.op.span is not None else 0 for e in (one, other))
    why = "they name the same memory by different addresses."
    if nodes[0].thread == nodes[1].thread:
        return f"Execute fence.proxy.alias after line {first}, before line {second}: {why}"
    return (
        f"Execute fence.proxy.alias on the way from line {first} to line {second}, in either thread, beside the "
        f"release and the acquire or the barrier that orders them: {why}"
    )


def missing_group_wait(prepared: Prepared, candidate: Candidate, pair: tuple[int, int]) -> str:
    """The wait that an operation of a group lacks before the other access of the pair, and why an existing wait is not
    enough.

    Empty if the pair is of another kind, or the fix is not known.
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
    same = old.thread == new.thread
    if isinstance(event.op, Wgmma) and new.index in _issued_after(prepared, candidate, issue):
        lines = (op.span.line if op.span is not None else 0 for op in (new.source.op, issue.op))
        return order_before_wgmma(*lines, own=same)
    if any(uid == event.uid for uid, _ in s.paths[old.thread].tracked):  # an mbarrier tells of its completion
        return _wait_or_order(old, new, issue)
    later = _count_closed_between(prepared, old, issue, new.source if same else None)
    mechanism = wait_for_completion(event.op, write=Tag.W in event.tags, later=later)
    remarks = explain_insufficient_wait(event.op, _waits(prepared, old, issue), write=Tag.W in event.tags)
    if mechanism is None or new.source.op.span is None or (same and new.source.order < issue.order):
        return ""
    if same:
        return " ".join(
            filter(None, (f"{mechanism} before line {new.source.op.span.line}.", remarks, pending_groups_note(later)))
        )
    line, first = new.source.op.span.line, issue.op.span.line if issue.op.span is not None else 0
    met = _read_phase(prepared, candidate, old, issue, new)
    if met is ReadPhase.NEXT:
        return order_before_issue(line, first)
    if not remarks:
        return _wait_or_order(old, new, issue)
    instead = alternative_order_before_issue(line, first) if met is ReadPhase.EITHER else ""
    over = f"then hand over to line {line}: a barrier, or a release that is acquired."
    return f"{mechanism} in {s.thread(old).name}, {over} {remarks} {instead}".strip()


def _wait_or_order(copy: Node, write: Node, issue: Event) -> str:
    """The two possible fixes if another thread writes what an operation reads: a wait, or synchronisation before the
    issue.
    """
    if copy.thread == write.thread or not copy.has(Tag.R) or not write.has(Tag.W) or write.source is None:
        return ""
    stored, issued = write.source.op.span, issue.op.span
    if stored is None or issued is None:
        return ""
    fence = write.has(Tag.GEN) and not copy.has(Tag.GEN)
    return f"{catalogue.get('RACE003').remedy} {alternative_order_before_issue(stored.line, issued.line, fence=fence)}"


def _read_phase(prepared: Prepared, candidate: Candidate, copy: Node, issue: Event, read: Node) -> ReadPhase:
    """Which fill of the bytes of a read a copy in flight is.

    It is the next one if an earlier write of these bytes is handed over to the read and nothing orders the read after
    the issue of the copy.
    """
    s = prepared.s
    if not copy.has(Tag.W) or not read.has(Tag.R) or copy.has(Tag.GEN) is not read.has(Tag.GEN):
        return ReadPhase.OWN
    before = _before(prepared, candidate, read)
    if before & set(s.nodes_of[issue.uid]):
        return ReadPhase.OWN
    low, high = read.address, read.address + read.size
    alike = [n for n in s.nodes if n.source is not None and n.address < high and low < n.address + n.size]
    if not any(n.has(Tag.W) and n.index in before and n is not copy for n in alike):
        return ReadPhase.OWN
    span = read.source.op.span if read.source is not None else None
    again = any(n.has(Tag.R) and n.source and n.source.op.span == span and _in_order(n, read) for n in alike)
    return ReadPhase.EITHER if again else ReadPhase.NEXT


def _issued_after(prepared: Prepared, candidate: Candidate, issue: Event) -> set[int]:
    """The events ordered before the issue of an operation."""
    s = prepared.s
    return set().union(*(_before(prepared, candidate, s.nodes[k]) for k in s.nodes_of[issue.uid]))


def _before(prepared: Prepared, candidate: Candidate, node: Node) -> set[int]:
    """The events ordered before ``node`` by program order and synchronisation."""
    s = prepared.s
    behind: dict[int, list[int]] = {}
    chosen = (e for choice, taken in zip(prepared.choices, candidate, strict=True) for e in choice.options[taken].edges)
    for relation, pairs in (*chosen, *((r, ((a, b),)) for r, a, b in prepared.extra_edges)):
        for a, b in pairs:
            strong = not s.nodes[a].has(Tag.WEAK) and not s.nodes[b].has(Tag.WEAK)
            if relation in HANDS_OVER or (relation == "rf" and strong):
                behind.setdefault(b, []).append(a)
    before, left = {node.index}, [node.index]
    while left:
        at = s.nodes[left.pop()]
        fresh = {*behind.get(at.index, []), *(n.index for n in s.nodes if _in_order(n, at))} - before
        before |= fresh
        left += fresh
    return before


def _in_order(first: Node, second: Node) -> bool:
    """Whether ``first`` precedes ``second`` in program order."""
    if first.thread != second.thread or first.source is None or second.source is None:
        return False
    a, b = first.source.order, second.source.order
    return a is not None and b is not None and a < b


def _waits(prepared: Prepared, old: Node, issue: Event) -> Iterator[Wait]:
    """The waits that may have been meant for the operation: later ones of its own thread or, if there are none, those
    of other threads.
    """
    s = prepared.s
    mine = [e for e in s.paths[old.thread].events if _precedes(issue, e)]
    own = [(e.op, _count_closed_between(prepared, old, issue, e)) for e in mine if isinstance(e.op, WaitGroup)]
    for op, later in own:
        yield Wait(op=op, thread=s.thread(old).name, own=True, later=later)
    if own or isinstance(issue.op, Wgmma):  # a group of wgmma is of its warpgroup, whoever waits for it
        return
    its = {op.span for op in s.thread(old).code}
    for path in s.paths:
        for event in path.events:
            if isinstance(event.op, WaitGroup) and event.op.span not in its:
                yield Wait(op=event.op, thread=s.program.threads[path.thread].name, own=False, later=None)


def _precedes(first: Event, second: Event) -> bool:
    """Whether ``first`` precedes ``second`` in the program order of their thread."""
    return first.order is not None and second.order is not None and first.order < second.order


def _count_closed_between(prepared: Prepared, old: Node, issue: Event, new: Event | None) -> int | None:
    """The number of groups closed between the operation's group and ``new``; 0 if that is not known, ``None`` if its
    group stays open.
    """
    code = prepared.s.thread(old).code
    if new is not None and not any(isinstance(op, Branch) for op in code):
        return count_closed_groups(code[issue.instruction : new.instruction], issue.op)
    return 0 if _committed(prepared, old, new) else None


def _committed(prepared: Prepared, old: Node, before: Event | None) -> bool:
    """Whether the issuing thread closes a group after the operation (and before ``before``), judged by its code."""
    assert old.source is not None
    code = prepared.s.thread(old).code
    first = next((k for k, op in enumerate(code) if op.span == old.source.op.span), len(code))
    last = len(code)
    if before is not None:
        last = next((k for k, op in enumerate(code) if k > first and op.span == before.op.span), len(code))
    family = family_of(old.source.op)
    return any(isinstance(op, Commit) and op.family == family for op in code[first:last])
