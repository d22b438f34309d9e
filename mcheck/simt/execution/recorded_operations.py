"""The operations of each lane that other lanes can observe, as recorded, with numbers for operands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.effects.operands import decisive_fields
from mcheck.frontend.ptx import taint
from mcheck.ir.expr import Const, Expr, Lanes, Reg
from mcheck.ir.ops import AssumedValue, Atomic, Await, Load, Op, Ranges, Store, UnknownContinuation, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.forced_values import AccessId, Observation
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.execution.told_apart import ToldApart
from mcheck.simt.execution.waits.assumed_failures import AssumedFailures

SEEN = Reg("seen")
"""The value of a load on which the following code depends."""
ONE_VALUE = "this load is repeated, and only the last of its values is followed"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not followed, or in one way only: ``reason`` is a clause, ``span`` its location. With
    ``nothing_known`` nothing is known of what follows it; other gaps bound the answer. With ``assumes_contents``, it is
    about words whose initial contents the launch does not give.
    """

    reason: str
    span: Span | None
    nothing_known: bool = False
    assumes_contents: bool = False


MAX_BOUND_VALUES = 16
"""Maximum number of values that may be others for which other paths are followed, if control depends on them."""


@dataclass(slots=True)
class RecordedOperations:
    """``code`` has the operations of every lane in program order; equal operations are one object where they can be."""

    lanes: int
    code: list[list[Op]] = field(init=False)
    gaps: dict[tuple[str, Span | None], Gap] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)
    interned: dict[tuple[object, ...], Op] = field(default_factory=dict)
    repeated_accesses: list[Any] = field(default_factory=list)
    """Accesses of rounds that were left out (``mcheck.simt.rounds.repeated_access.RepeatedAccess``); they are not in
    ``code``.
    """
    operations: int = 0
    returned: dict[AccessId, Observation] = field(default_factory=dict)
    """Values that atomics have returned, by lane and index in its code."""
    told_apart: ToldApart = field(default_factory=ToldApart)
    """Which of these values the path tells apart."""
    loaded: dict[AccessId, Observation] = field(default_factory=dict)
    """Values that strong loads have returned last, by lane and index in its code."""
    failed: set[AccessId] = field(default_factory=set)
    """Those of these loads whose last value does not end the wait that they are part of."""
    repeated: dict[Span | None, None] = field(default_factory=dict)
    """Where loads were repeated of whose values only the last one is among those."""
    stored: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    """Values of strong stores that depend on the order of the threads, likewise."""
    decisive_atomics: set[int] = field(default_factory=set)
    """The addresses of atomics on whose results something may depend."""
    unknown_atomics: set[int] = field(default_factory=set)
    """The addresses of atomics whose results are unknown."""
    order_gaps: dict[tuple[str, Span | None], Gap] = field(default_factory=dict)
    """Where control, an address or an operand has depended on the order in which the threads were run."""
    swapped: set[tuple[int, int]] = field(default_factory=set)
    """Lanes and places in the code of their swaps."""
    has_unbound_values: bool = False
    """Whether a value that depends on that order is not among those recorded."""
    order_is_possible: bool = True
    """Whether the order of this run is possible."""
    early_accesses: dict[tuple[object, ...], Any] = field(default_factory=dict)
    """Accesses before a wait for the preceding grids (``mcheck.simt.traces.dependent_grids.Early``), by location."""
    polls: AssumedFailures = field(default_factory=AssumedFailures)
    since_barriers: dict[int, tuple[int, set[tuple[int, int]]]] = field(default_factory=dict)
    """By lane, how much of its code has been looked through, and what it has accessed there since its last barrier."""
    has_conflicting_stores: bool = False
    joint_stores: set[Span] = field(default_factory=set)
    """Stores of which that of one lane stands for those of others."""
    """Whether lanes stored to one place by one instruction, with values that may differ."""

    def __post_init__(self) -> None:
        self.code = [[] for _ in range(self.lanes)]

    def note_gap(
        self, reason: str, span: Span | None, *, nothing_known: bool = False, assumes_contents: bool = False
    ) -> None:
        """Record what was not followed."""
        self.gaps.setdefault((reason, span), Gap(reason, span, nothing_known, assumes_contents))

    def note_order_dependence(self, what: str, span: Span | None) -> None:
        """Record that only the order of this run is followed where something depends on it."""
        reason = f"only one order is followed where {what}"
        self.order_gaps.setdefault((reason, span), Gap(reason, span))

    def bind_values(self, *, one_order: bool = False, settled: Collection[AccessId] = ()) -> bool:
        """Bind atomics and strong loads to the values that they returned in this run, where the path depends on them;
        stores of such values become known. Returns whether other values can be told: each of these operations is
        followed by an ``AssumedValue``, unless the path is the same for all of its values. Otherwise there are too
        many beside those that barriers have ``settled``, or ``one_order`` is asked for: only the order of this run is
        followed, and an atomic is a wait for its value.
        """
        if not self.order_gaps:
            return True
        for span in self.repeated:
            self.note_gap(ONE_VALUE, span)
        seen_values = self.observations()
        atomics = {
            place: seen_values[place]
            for place, seen in self.returned.items()
            if self.order_is_possible and seen.address in self.decisive_atomics - self.unknown_atomics
        }
        told = {place: seen for place, seen in atomics.items() if seen.is_told(self._size(place))}
        telling = (
            not one_order
            and self.order_is_possible
            and not self.has_unbound_values
            and self.decisive_atomics.isdisjoint(self.unknown_atomics)
            and len(told) + len(self.loaded.keys() - set(settled)) <= MAX_BOUND_VALUES
        )
        self._bind_stores()
        bound = (told if telling else atomics) | self.loaded
        for (lane, place), seen in sorted(bound.items(), key=lambda one: one[0], reverse=True):
            op = self.code[lane][place]
            if (lane, place) in atomics and not telling:
                self.code[lane][place] = self._awaited(op, seen.value)
            else:
                self.code[lane][place : place + 1] = self._followed(op, seen.values, place if telling else -1)
        return telling

    def _size(self, place: AccessId) -> int:
        """The bytes of the value of an access."""
        inner = performed_operation(self.code[place[0]][place[1]])
        assert isinstance(inner, Load | Atomic)
        return type_size(inner.type)

    def record_swap(self, lane: int, at: int) -> None:
        """Record a swap by a lane at a place in the code. A second one there is another attempt of a loop, which may be
        repeated any number of times.
        """
        self.has_unbound_values |= (lane, at) in self.swapped
        self.swapped.add((lane, at))

    def observations(self) -> dict[AccessId, Observation]:
        """The values that atomics and strong loads have returned."""
        alike = self.told_apart.alike
        returned = {p: replace(seen, alike=alike[p]) if p in alike else seen for p, seen in self.returned.items()}
        return returned | self.loaded

    def _awaited(self, op: Op, old: int) -> Op:
        """An atomic that waits until it returns a value."""
        return self.intern(
            ("bound", id(op), old),
            lambda: Await(
                inner=op, compare=("==", Const(old)), followed=True, span=op.span, text=op.text, section=op.section
            ),
        )

    def _bind_stores(self) -> None:
        for (lane, place), values in self.stored.items():
            stored = self.code[lane][place]
            assert isinstance(stored, Store)
            self.code[lane][place] = self.intern(
                ("stored", id(stored), values),
                lambda op=stored, values=values: replace(op, srcs=tuple(map(Const, values))),  # type: ignore[misc]
            )

    def record_loaded(
        self,
        lanes: NDArray[np.int64],
        address: NDArray[np.uint64],
        values: NDArray[np.uint64],
        known: NDArray[np.bool_],
        failed: Sequence[bool],
    ) -> None:
        """Record the values that the latest loads of these lanes returned, where known, and which have ``failed`` to
        end a wait. A load that is not recorded again (``record``) has returned another value before, which may decide
        something unless it has failed.
        """
        given = zip(lanes.tolist(), address.tolist(), values.tolist(), known.tolist(), failed, strict=True)
        for lane, where, value, sure, fails in given:
            place = lane, len(self.code[lane]) - 1
            if place in self.loaded and place not in self.failed:
                self.repeated[self.code[lane][-1].span] = None
            (self.failed.add if fails else self.failed.discard)(place)
            if sure:
                self.loaded[place] = Observation(where, value)
            else:
                self.loaded.pop(place, None)
                self.has_unbound_values = True

    def record_stored(
        self, lanes: NDArray[np.int64], given: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint8]]]
    ) -> None:
        """Record the values that these lanes stored last, where known up to the order of the threads."""
        for j, lane in enumerate(lanes.tolist()):
            if not any(int(q[j]) & ~taint.ORDER for _, q in given):
                self.stored[lane, len(self.code[lane]) - 1] = tuple(int(v[j]) for v, _ in given)

    def _followed(self, op: Op, values: Ranges, branch: int) -> list[Op]:
        """A load or an atomic with the constraint that it returns one of these values."""
        inner = performed_operation(op)
        assert isinstance(inner, Load | Atomic)
        size = type_size(inner.type)
        if isinstance(inner, Atomic):
            kept = self.intern(("seen", id(op)), lambda: replace(inner, dst=SEEN))
        else:
            kept = self.intern(("seen", id(op)), lambda: op if isinstance(op, Await) else replace(inner, dsts=(SEEN,)))
        reg = (
            next(r for r in inner.dsts if r is not None) if isinstance(op, Await) and isinstance(inner, Load) else SEEN
        )
        return [
            kept,
            self.intern(
                ("followed", id(op), values, branch),
                lambda: AssumedValue(reg=reg, values=values, size=size, branch=branch, span=op.span, text=op.text),
            ),
        ]

    def lose_lanes(self, lanes: NDArray[np.int64], reason: str, span: Span | None) -> None:
        """Record that what these lanes do from here on is unknown."""
        self.append(UnknownContinuation(reason=reason, span=span, text=reason), lanes)

    def distinct_operations(self, lanes: Iterable[int] | None = None) -> list[Op]:
        """The operations of some lanes, or of all, those that lanes share once."""
        codes = self.code if lanes is None else (self.code[lane] for lane in lanes)
        return list({id(op): op for code in codes for op in code}.values())

    def append(self, op: Op, lanes: Sequence[int] | NDArray[np.int64]) -> None:
        """Append one operation to these lanes, behind the polls that it outdates."""
        code, polled = self.code, self.polls.by_lane
        for lane in lanes if isinstance(lanes, list) else np.asarray(lanes).tolist():
            if polled and lane in polled:
                self.append_polls(lane, op)
            code[lane].append(op)
        self.operations += len(lanes)

    def append_polls(self, lane: int, following: Op | None) -> None:
        """Append the polls of a lane that its next operation, or its end, outdates."""
        found = self.polls.outdate(lane, following)
        self.code[lane] += found
        self.operations += len(found)

    def intern(self, key: tuple[object, ...], make: Callable[[], Op]) -> Op:
        """The operation of a key, made once (hash consing)."""
        found = self.interned.get(key)
        if found is None:
            found = self.interned[key] = make()
        return found

    def record(
        self, key: object, leaves: Sequence[NDArray[np.uint64]], lanes: NDArray[np.int64],
        make: Callable[[Sequence[Expr]], Op], *, spread: bool, again: bool = False,
    ) -> None:  # fmt: skip
        """Append an operation to these lanes, whose operands have the values ``leaves``, each an array over ``lanes``.

        Lanes with equal operands share one operation. With ``spread`` those of a warp share one too where operands
        differ, which then are ``Lanes``: not for strong accesses, in whose order the engine goes by the word that each
        names. ``again`` is a poll: it is not repeated while nothing else is done.
        """
        if not leaves:
            self.append(self.intern((key,), lambda: make(())), lanes)
            return
        table = np.stack([np.broadcast_to(leaf, lanes.shape) for leaf in leaves])
        if not (table != table[:, :1]).any():
            values = tuple(table[:, 0].tolist())
            op = self.intern((key, values), lambda: make([Const(v) for v in values]))
            if again:
                lanes = np.array([k for k in lanes.tolist() if not self.code[k] or self.code[k][-1] is not op], int)
            self.append(op, lanes)
            return
        if spread:
            warps = lanes // WARP
            for warp in distinct(warps):
                some = warps == warp
                self._warp(key, table[:, some], lanes[some], make)
            return
        rows, back = np.unique(table, axis=1, return_inverse=True)
        for k in range(rows.shape[1]):
            values = tuple(rows[:, k].tolist())
            op = self.intern((key, values), lambda values=values: make([Const(v) for v in values]))  # type: ignore[misc]
            self.append(op, lanes[back == k])

    def _warp(
        self, key: object, table: NDArray[np.uint64], lanes: NDArray[np.int64], make: Callable[[Sequence[Expr]], Op]
    ) -> None:
        """Append the operation of the lanes of one warp."""
        places = lanes % WARP
        exprs: list[Expr] = []
        for row in table:
            if (row == row[0]).all():
                exprs.append(Const(int(row[0])))
                continue
            values = [0] * WARP
            for place, value in zip(places.tolist(), row.tolist(), strict=True):
                values[place] = value
            exprs.append(Lanes(tuple(values)))
        self.append(self.intern((key, tuple(exprs)), lambda: make(exprs)), lanes)


def decisive_operands(op: Op) -> list[tuple[str, Expr]]:
    """The operands of an operation that matter, in the order in which ``fill_operands`` takes their values."""
    found: list[tuple[str, Expr]] = []
    for name in decisive_fields(op):
        _collect(name, getattr(op, name), found)
    return found


def _collect(name: str, value: Any, found: list[tuple[str, Expr]]) -> None:
    if isinstance(value, tuple):
        for item in value:
            _collect(name, item, found)
    elif value is not None:
        found.append((name, value))


def fill_operands(op: Op, values: Sequence[Expr], **more: Any) -> Op:
    """The operation with these values for the operands that matter, and other fields set."""
    rest = iter(values)

    def put(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(put(item) for item in value)
        return None if value is None else next(rest)

    return replace(op, **{name: put(getattr(op, name)) for name in decisive_fields(op)}, **more)
