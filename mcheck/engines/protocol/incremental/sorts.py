"""Sorts of events: everything about an event that base relations such as ``loc`` or ``overlap`` depend on.

The relation between two sorts is computed once for all executions of a program. Sorts that are related to the same
others form a class: the events that one of them is related to are kept together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.generated_code import Known
from mcheck.engines.protocol.incremental.kinds import ONE_WAY, STATIC
from mcheck.events.event import Event
from mcheck.events.relations import RELATIONS, STRONG, WIDTHS, event_of
from mcheck.events.structure import Node, Structure
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.program import Program

PLACES = frozenset(("loc", "overlap", "vloc", "complete-overlap"))
"""Base relations between accesses to memory."""
NO_CLASS = -1
"""The class of no sort."""


@dataclass(slots=True)
class Side:
    """One direction of a relation: the class of each sort, and all of these classes."""

    of: dict[int, int] = field(default_factory=dict)
    classes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Classes:
    """Classes of sorts, for all relations and both directions.

    ``others`` are the sorts that the members of a class are related to (or from), ``size`` the number of its members,
    ``parent`` the class that it was split from, if any.
    """

    others: list[set[int]] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    of_other: dict[int, list[int]] = field(default_factory=dict)
    """By sort, the classes whose members are related to it."""

    def make(self, others: set[int], size: int, parent: int) -> int:
        """Add a class."""
        number = len(self.parent)
        self.others.append(others)
        self.size.append(size)
        self.parent.append(parent)
        for sort in others:
            self.of_other.setdefault(sort, []).append(number)
        return number

    def gain(self, side: Side, which: Iterable[int], new: int) -> None:
        """Relate some sorts to a ``new`` one: those that are not all of their class are split off."""
        found: dict[int, list[int]] = {}
        for sort in which:
            found.setdefault(side.of[sort], []).append(sort)
        for number, sorts in found.items():
            if len(sorts) == self.size[number]:
                self.others[number].add(new)
                self.of_other.setdefault(new, []).append(number)
                continue
            self.size[number] -= len(sorts)
            made = self.make(self.others[number] | {new}, len(sorts), number)
            side.classes.append(made)
            for sort in sorts:
                side.of[sort] = made

    def place(self, side: Side, sort: int, others: set[int]) -> None:
        """Add a sort to the class of those with the same others."""
        for number in side.classes:
            if self.others[number] == others:
                self.size[number] += 1
                side.of[sort] = number
                return
        side.of[sort] = self.make(others, 1, NO_CLASS)
        side.classes.append(side.of[sort])


class Pairs:
    """The pairs of sorts in a base relation of ``ONE_WAY``: by sort, its class as a source (``ahead``) and as a target
    (``behind``).
    """

    def __init__(self, name: str, classes: Classes) -> None:
        self.relation = RELATIONS[name]
        self.classes = classes
        self.firsts: list[tuple[int, Node]] = []
        self.seconds: list[tuple[int, Node]] = []
        self.ahead = Side()
        self.behind = Side()

    def add(self, structure: Structure, sort: int, node: Node) -> bool:
        """Add a sort, of which ``node`` is an event; return whether it may be a source, and a target."""
        event, holds = event_of(node), self.relation.predicate
        first, second = self.relation.first(event, node), self.relation.second(event, node)
        if first:
            self.firsts.append((sort, node))
        if second:
            self.seconds.append((sort, node))
        if second:
            sources = {k for k, other in self.firsts if holds(structure, other, node)}
            self.classes.gain(self.ahead, sources - {sort}, sort)
            self.classes.place(self.behind, sort, sources)
        if first:
            targets = {k for k, other in self.seconds if holds(structure, node, other)}
            self.classes.gain(self.behind, targets - {sort}, sort)
            self.classes.place(self.ahead, sort, targets)
        return first or second


class Sorts:
    """The numbered sorts of the events of a program's executions."""

    def __init__(self, program: Program) -> None:
        self.structure = Structure(program, ())
        self.program = program
        self.numbers: dict[tuple[object, ...], int] = {}
        self.classes = Classes()
        self.pairs: dict[str, Pairs] = {name: Pairs(name, self.classes) for name in ONE_WAY}
        self.alone: list[frozenset[str]] = []
        """By sort, the base relations, of those that follow from what events are, that relate it to nothing."""
        self.names: list[frozenset[str]] = []
        """By sort, the sets of the model that its events are in."""
        self.knowns: dict[tuple[int, tuple[str, ...], tuple[str, ...]], Known] = {}
        """By sort, and the base relations of which edges come with its events and lead back from them."""
        self._places: dict[tuple[int, int], tuple[tuple[str, object], ...]] = {}
        """What ``places_of`` says, by sort and thread."""

    def sort_of(self, event: Event, thread: int, where: int | None) -> int:
        """Return the sort of an event of a thread; ``where`` is its address as far as relations depend on it."""
        cta = self.program.threads[thread].place.cta.number if thread >= 0 else -1
        step = event.mbarrier
        place = where if where is not None or not event.size else None
        owner = (event.address - SHARED_BASE) // SHARED_WINDOW if "SHARED" in event.tags else -1
        # fence.mbarrier_init covers what its own thread has initialised
        own = Tag.MBARRIER_INIT_FENCE in event.tags or (step is not None and step.kind == "init")
        key = (
            thread if own else -1, cta, event.size > 0, event.tags, event.scope, event.spaces, event.covered,
            event.block, owner, place, None if step is None else (step.address, step.kind), event.order is None,
        )  # fmt: skip
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.numbers)
            node = Node(-1, event, thread, event.address, event.size)
            related = set()
            for name, pairs in self.pairs.items() if thread >= 0 else ():
                if pairs.add(self.structure, found, node):
                    related.add(name)
            self.alone.append(_unrelated(node, related))
            self.names.append(_names(event))
        return found

    def places_of(self, sort: int, thread: int, event: Event) -> tuple[tuple[str, object], ...]:
        """Yield a kind and a key for everything that events of a sort share (``entries.KEYS``)."""
        found = self._places.get((sort, thread))
        if found is None:
            cta = self.program.threads[thread].place.cta
            some = (
                ("scope", event.scope), ("object", None if event.mbarrier is None else event.mbarrier.address),
            )  # fmt: skip
            found = self._places[sort, thread] = (
                ("thread", thread), ("cta", cta.number), ("cluster", (cta.gpu, cta.cluster)), ("gpu", cta.gpu),
                ("block", event.block), ("sort", sort), *((kind, key) for kind, key in some if key is not None),
                *((("memory", None),) if event.size else ()),
                *((("displaced", None),) if Tag.MULTIMEM in event.tags else ()),
            )  # fmt: skip
        return found


def rename_addresses(sort: tuple[object, ...], at: Callable[[int], int]) -> tuple[object, ...]:
    """Return the identity of a sort (``Sorts.sort_of``) with its addresses renamed."""
    *rest, covered, block, owner, place, step, unordered = sort
    if isinstance(covered, tuple):
        covered = at(covered[0]), covered[1]
    if isinstance(place, int):
        place = at(place)
    if isinstance(step, tuple):
        step = at(step[0]), step[1]
    return *rest, covered, block, owner, place, step, unordered


def _unrelated(node: Node, related: set[str]) -> frozenset[str]:
    """Return the relations that relate an event to nothing; ``related`` are those of ``ONE_WAY`` that it may be in."""
    event = event_of(node)
    if node.thread < 0:
        return STATIC - {"id", "loc", "overlap", "ext"}
    out = ONE_WAY - related
    if not event.size:
        out |= PLACES
    if event.scope is None:
        out |= {"sr"}
    if event.mbarrier is None:
        out |= {"mbarrier-object"}
    return out


def _names(event: Event) -> frozenset[str]:
    names: set[str] = set(event.tags)
    if event.tags & STRONG and "CLUSTERBAR" not in event.tags:
        names.add("STRONG")
    names.update(name for name, scope in WIDTHS.items() if event.scope == scope)
    return frozenset(names)
