"""How the launches of a stream are ordered, and the accesses of different launches that nothing orders.

A launch begins when all before it have ended and their memory is visible; with programmatic dependent launch, when each
CTA of the one before it has executed ``griddepcontrol.launch_dependents`` or has exited, which publishes nothing.
``griddepcontrol.wait`` waits for the launch before alone, which has ended; what that has waited for has ended too (PTX
ISA 9.0 section 9.7.13.13; CUDA programming guide, programmatic dependent launch; open questions Q36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from enum import IntEnum

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.frontend.ptx.launch import Launch
from mcheck.simt.grid.footprints.footprint import READ, REDUCE, UPDATE, WRITE, Form
from mcheck.simt.grid.footprints.overlap import UNDECIDED
from mcheck.simt.grid.launches.launch_accesses import ANYWHERE, LaunchAccess, LaunchFootprint
from mcheck.simt.grid.launches.launch_overlap import CommonBytes, OverlapFinder
from mcheck.simt.grid.launches.launch_watch import BY_EXIT, BY_TRIGGER
from mcheck.simt.grid.launches.wait_order import AFTER, BEFORE, MAYBE

DOES = {READ: "reads", WRITE: "writes", REDUCE: "adds to", UPDATE: "updates"}


class Order(IntEnum):
    """Whether one thing comes before another and is visible there: no, not known, yes. The values are those of the
    placements behind a wait.
    """

    UNORDERED = BEFORE
    OPEN = MAYBE
    ORDERED = AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Accesses of common bytes by two launches that nothing orders: ``earlier`` by the launch that is first in the
    stream, ``later`` by the other one; ``common`` is ``None`` where it is not known whether there are such bytes.
    ``definite``: it is a race.
    """

    first: int
    second: int
    earlier: LaunchAccess
    later: LaunchAccess
    common: CommonBytes | None
    definite: bool
    why: str = ""

    @property
    def spans(self) -> tuple[Span | None, Span | None]:
        """Where they are in the module."""
        return self.earlier.span, self.later.span


@dataclass(slots=True)
class StreamOrder:
    """The order of the launches of one stream. ``footprints`` are looked up where they matter: they cost an execution.

    The indices are those of ``launches``.
    """

    launches: tuple[Launch, ...]
    footprint: Callable[[int], LaunchFootprint | None]
    limit: Limit
    overlaps: OverlapFinder = field(default_factory=OverlapFinder)
    known: dict[tuple[str, int, int], Order] = field(default_factory=dict)
    last_plain: list[int] = field(default_factory=list)
    """For each launch the last one, itself or before it, that begins when all before it have ended."""

    def __post_init__(self) -> None:
        for number, launch in enumerate(self.launches):
            plain = number == 0 or not launch.programmatic
            self.last_plain.append(number if plain else self.last_plain[-1])

    def may_overlap(self, first: int, second: int) -> bool:
        """Whether two launches may be running at the same time."""
        return self.started_after(second, first) is not Order.ORDERED

    def started_after(self, second: int, first: int) -> Order:
        """Whether a launch starts only when an earlier one has ended and its memory is visible.

        Without the attribute anywhere between the two that is so. Else the launch starts when the one in front has
        started, and has let it start: behind its wait, perhaps, and perhaps with a release fence between.
        """
        if self.last_plain[second] > first:
            return Order.ORDERED
        if first == second - 1:
            return Order.UNORDERED
        key = "started", second, first
        if key not in self.known:
            between = self.footprint(second - 1)
            start = Order.OPEN if between is None else Order(between.start)
            let = min(start, self.ended_after(second - 2, first))
            self.known[key] = max(let, min(Order.OPEN, self.started_after(second - 1, first)))
        return self.known[key]

    def ended_after(self, second: int, first: int) -> Order:
        """Whether a launch ends only when an earlier one, or itself, has ended."""
        if second == first:
            return Order.ORDERED
        order = self.started_after(second, first)
        if order is Order.ORDERED:
            return order
        key = "ended", second, first
        if key not in self.known:
            found = self.footprint(second)
            waits = Order.OPEN if found is None else Order(found.waits)
            self.known[key] = max(order, min(waits, self.ended_after(second - 1, first)))
        return self.known[key]

    def relation(self, first: int, second: int) -> tuple[Order, Order, bool]:
        """All that the order of the accesses of two launches depends on beside the accesses: how the start and the
        wait of the second one are ordered with the end of the first, and whether nothing is between the two.
        """
        started = self.started_after(second, first)
        return started, max(started, self.ended_after(second - 1, first)), first == second - 1

    def conflicts(self, first: int, second: int) -> Iterator[Conflict]:
        """The conflicting accesses of two launches that nothing orders, or that may be such."""
        if not self.may_overlap(first, second):
            return
        one, other = self.footprint(first), self.footprint(second)
        if one is None or other is None:
            return
        signals = one.may_signal and other.may_signal
        for a in one.accesses:
            self.limit.check()
            for b in other.accesses:
                touching = a.memory == b.memory or ANYWHERE in (a.memory, b.memory)
                found = self._conflict(first, a, second, b, signals=signals) if touching else None
                if found is not None:
                    yield found

    def _conflict(self, first: int, a: LaunchAccess, second: int, b: LaunchAccess, *, signals: bool) -> Conflict | None:
        """The conflict of two accesses, if they are not ordered for certain and may have common bytes. ``signals``: the
        launches may synchronise by flags.
        """
        if not is_conflict(a.form, b.form):
            return None
        order, why = self._order(first, a, second, b)
        if order is Order.ORDERED:
            return None
        known = ANYWHERE not in (a.memory, b.memory)
        common = self.overlaps.find(a, b) if known else UNDECIDED
        if common is None:
            return None
        sure = all(x.exact and x.path.sure and x.form.sure for x in (a, b))
        weak = is_weak(a.form) or is_weak(b.form)
        here = common if isinstance(common, CommonBytes) else None
        definite = here is not None and order is Order.UNORDERED and sure and weak and not signals
        if not known:
            why = "one of the addresses is not known"
        elif not weak:
            why = why or "both are strong"
        elif signals:
            why = why or "flags between the two launches are not followed"
        why = why or "whether both are executed, and with these bytes, is not followed"
        return Conflict(
            first=first, second=second, earlier=a, later=b, common=here, definite=definite, why="" if definite else why
        )

    def _order(self, first: int, a: LaunchAccess, second: int, b: LaunchAccess) -> tuple[Order, str]:
        """How an access is ordered before one of a later launch, and why that is not known, if so."""
        started, behind, adjacent = self.relation(first, second)
        place = b.placement.behind_wait
        order = started if place == BEFORE else behind
        if place == MAYBE and started is not behind:
            return Order.OPEN, "whether a synchronisation puts the later one behind griddepcontrol.wait is not followed"
        if order is Order.OPEN:
            return order, "whether the launches between the two wait is not followed"
        if order is Order.ORDERED or place != BEFORE:
            return order, ""
        if a.placement.released == BY_EXIT:
            return Order.OPEN, "a fence follows the earlier one, but no text says that the exit publishes it"
        if a.placement.released == BY_TRIGGER:
            if adjacent and a.form.plain and b.form.plain:
                return Order.ORDERED, ""
            return Order.OPEN, "how far the release fence before launch_dependents reaches is not followed"
        found = self.footprint(first)
        if a.form.kind == READ and adjacent and found is not None and not found.may_trigger:
            return Order.OPEN, "all CTAs of the earlier launch have exited, but no text says that its reads are over"
        return order, ""


def is_weak(form: Form) -> bool:
    """Whether an access is surely weak: it races with whatever conflicts with it and is not ordered."""
    return form.plain or form.proxy != "generic"
