"""Merges the paths of a thread: common instructions once, the others side by side.

Paths are sequences of instructions. One path is aligned with the next: instructions that do the same with the same
values under the same conditions become one, in their order. The result is a sequence of which every path is a
subsequence, so one event structure holds all combinations of paths (``mcheck.engines.z3.guards`` says which events are
in an execution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from itertools import groupby

from mcheck.base.records import dataclass, replace
from mcheck.events.event import Event, Path
from mcheck.semantics.terms import Term, Uid

HERE = -2
"""A placeholder for the thread in the names of events of the same instruction."""

PLACES = 64
"""More than the number of positions of an instruction in program order."""

Name = Callable[[Uid], Uid]


@dataclass(slots=True)
class Block:
    """An instruction: its identity, its events, and the alternatives that have it (as bits)."""

    key: object
    events: list[Event]
    mask: int


@dataclass(slots=True)
class Joined:
    """The merged alternatives of a thread. ``path`` has the events of all; ``names`` maps the events of each to those.

    ``masks``: the alternatives that have an event; ``completes``: those in which a group's wait observes it.
    """

    alternatives: list[Path]
    path: Path
    names: list[dict[Uid, Uid]]
    masks: dict[Uid, int]
    completes: dict[tuple[Uid, Uid], int] = field(default_factory=dict)

    @property
    def all_mask(self) -> int:
        """All alternatives."""
        return (1 << len(self.alternatives)) - 1

    def term(self, alternative: int, term: Term) -> Term:
        """A term of an alternative, on the events of the merged path."""
        return renamed(term, self.names[alternative].__getitem__)

    @property
    def synchronises_alike(self) -> bool:
        """Whether all alternatives use barriers and mbarriers in the same way."""
        tracked = [{(n[m], n[s]) for m, s in p.tracked} for p, n in zip(self.alternatives, self.names, strict=True)]
        uses = (self.masks[e.uid] for e in self.path.events if e.barrier is not None or e.mbarrier is not None)
        return all(mask == self.all_mask for mask in uses) and all(pairs == tracked[0] for pairs in tracked)


def renamed(term: Term, name: Name) -> Term:
    """A term with the names of events replaced."""
    if isinstance(term, int) or term[0] == "?":
        return term
    if term[0] == "e":
        return ("e", name(term[1]))
    return tuple(_renamed(part, name) for part in term)


def _renamed(part: object, name: Name) -> object:
    if not isinstance(part, tuple) or not part:
        return part
    if isinstance(part[0], str):
        return renamed(part, name)
    return tuple(_renamed(inner, name) for inner in part)


def merge_paths(paths: list[Path]) -> Joined:
    """Merges the alternatives of a thread."""
    thread = paths[0].thread
    blocks: list[Block] = []
    names: list[dict[Uid, Uid]] = []
    fresh = 0
    for k, path in enumerate(paths):
        known: dict[Uid, Uid] = {}
        at = 0
        for _, run in groupby(path.events, key=lambda e: e.instruction):
            events = list(run)
            key = _key(events, known)
            found = next((j for j in range(at, len(blocks)) if blocks[j].key == key), -1)
            if found < 0:
                found = at
                here = {e.uid: (thread, fresh + offset) for offset, e in enumerate(events)}
                fresh += len(events)
                blocks.insert(at, Block(key, [_named(e, {**known, **here}.__getitem__) for e in events], 0))
            block = blocks[found]
            block.mask |= 1 << k
            known |= {e.uid: shared.uid for e, shared in zip(events, block.events, strict=True)}
            at = found + 1
        names.append(known)
    return _numbered(paths, blocks, names)


def _key(events: list[Event], known: dict[Uid, Uid]) -> object:
    """What an instruction does: equal in two paths if it may be merged."""
    here = {e.uid: (HERE, k) for k, e in enumerate(events)}
    name = {**known, **here}.__getitem__
    base = min((e.order for e in events if e.order is not None), default=0)
    parts = []
    for e in events:
        place = None if e.order is None else e.order - base
        parts.append(replace(_named(e, name), op=None, order=place, instruction=0))  # type: ignore[arg-type]
    return tuple(id(e.op) for e in events), tuple(parts)


def _named(e: Event, name: Name) -> Event:
    """An event with its references to other events replaced."""
    what = e.mbarrier
    if what is not None and what.state is not None:
        what = replace(what, state=renamed(what.state, name))
    return replace(
        e,
        uid=name(e.uid),
        value=renamed(e.value, name),
        data=frozenset(map(name, e.data)),
        addr=frozenset(map(name, e.addr)),
        ctrl=frozenset(map(name, e.ctrl)),
        rmw=None if e.rmw is None else name(e.rmw),
        issue=None if e.issue is None else name(e.issue),
        mbarrier=what,
    )


def _numbered(paths: list[Path], blocks: list[Block], names: list[dict[Uid, Uid]]) -> Joined:
    """The merged path, with names and positions in the order of the sequence."""
    thread = paths[0].thread
    final: dict[Uid, Uid] = {}
    for block in blocks:
        for e in block.events:
            final[e.uid] = (thread, len(final))
    events: list[Event] = []
    masks: dict[Uid, int] = {}
    for number, block in enumerate(blocks):
        base = min((e.order for e in block.events if e.order is not None), default=0)
        for e in block.events:
            order = None if e.order is None else number * PLACES + e.order - base
            events.append(replace(_named(e, final.__getitem__), order=order, instruction=number))
            masks[events[-1].uid] = block.mask
    names = [{uid: final[shared] for uid, shared in known.items()} for known in names]
    first = names[0]
    tracked = tuple((first[m], first[s]) for m, s in paths[0].tracked)
    whole = Path(thread, tuple(events), (), {}, tracked=tracked)
    joined = Joined(paths, whole, names, masks)
    for k, path in enumerate(paths):
        for m, w in path.completes:
            pair = names[k][m], names[k][w]
            joined.completes[pair] = joined.completes.get(pair, 0) | 1 << k
    return joined


def groups(paths: Iterable[Path]) -> list[Joined]:
    """The paths of a thread in groups that use barriers and mbarriers in the same way."""
    alike: dict[object, list[Path]] = {}
    for path in paths:
        uses = tuple(id(e.op) for e in path.events if e.barrier is not None or e.mbarrier is not None)
        alike.setdefault(uses, []).append(path)
    out: list[Joined] = []
    for members in alike.values():
        whole = merge_paths(members)
        out += [whole] if whole.synchronises_alike else [merge_paths([path]) for path in members]
    return out
