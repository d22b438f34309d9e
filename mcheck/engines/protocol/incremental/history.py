"""Histories of windows, and what trials have answered after them.

Executions that are replayed up to a branch ask the model the same questions again. A window depends on nothing but the
program, the model, and what was added and merged in which order; so does the answer of a trial, which adds events and
removes them again. Equal histories have equal numbers, and an answer is remembered by the number of the history and by
all that the added events depend on. Sets of events in an answer hold too: slots are given out in the same order.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from mcheck.base.records import dataclass
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.events.event import Event
from mcheck.ir.ops import Op

MAX_HISTORIES = 50_000
"""Maximum number of histories that are recognised, and of answers that are remembered: each takes 0.6 KiB."""

_fields = attrgetter(*(name for name in Event.__slots__ if name != "op"))


@dataclass(slots=True, eq=False)
class Histories:
    """The histories of all executions of a program with the same agents under one model."""

    numbers: dict[object, int]
    answers: dict[object, Any]
    events: dict[object, int]
    operations: dict[int, tuple[int, Op]]
    """By identity, the number of an operation, and itself: as long as it is here, no other one is it."""
    equal: dict[Op, int]
    """The numbers of operations, the same for equal ones: each execution makes those of its initial writes."""
    count: int = 0

    @classmethod
    def create(cls) -> Histories:
        """Return the histories of executions none of which has begun; the empty one has number 0."""
        return cls({}, {}, {}, {}, {})

    def number_of_event(self, event: Event) -> int:
        """The number of an event, the same for equal events."""
        op = event.op
        known = self.operations.get(id(op))
        if known is None:  # to hash an operation takes long
            known = self.operations[id(op)] = self.equal.setdefault(op, len(self.equal)), op
        return self.events.setdefault((known[0], _fields(event)), len(self.events))

    def after_event(self, before: int, entry: Entry, *, complete: bool, flags: bool) -> int:
        """The history after an event is added."""
        return self.after(
            before,
            (
                self.number_of_event(entry.event), entry.thread, entry.sort, entry.exact, entry.instruction,
                tuple(entry.edges.items()), tuple(entry.back.items()), complete, flags,
            ),
        )  # fmt: skip

    def after(self, before: int, step: object) -> int:
        """The history that continues another one by a step."""
        found = self.numbers.get((before, step))
        if found is None:
            found = self.count = self.count + 1  # never given out before
            if len(self.numbers) < MAX_HISTORIES:
                self.numbers[before, step] = found
        return found

    def remember(self, question: object, answer: object) -> None:
        """Remember what a trial has answered."""
        if len(self.answers) < MAX_HISTORIES:
            self.answers[question] = answer
