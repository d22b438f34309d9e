"""Executions that stop early: in a deadlock, or where a thread has undefined behaviour.

A thread with undefined behaviour stops there; the others go on as far as they do not depend on it. Two accesses that
race in such a prefix race in every execution that extends it, so races are searched for there as well; states and
deadlocks are not (states are those of executions in which every thread ends).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.events.choices.candidate import Choice
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Event, Path
from mcheck.events.structure import Structure
from mcheck.semantics.terms import Uid, reads_of

MAX_COMBINATIONS = 5_000
"""The maximum number of combinations of paths, some of which stop early, that are searched for races."""

Cut = dict[object, Path]
"""The paths that a misuse cuts short, by ``name_of``."""
Seen = set[object]
"""The flagged pairs that have been reported, by check and instructions."""

AT_THE_END = frozenset({"UB216"})
"""Misuse that shows only when all threads have ended or wait forever."""


def cut_short(path: Path, uid: Uid) -> Path:
    """The path of a thread that stops before the event ``uid``; if that is a signal, for which no thread waits, the
    path without it.

    Events keep their names. Conditions on later reads of the thread are dropped.
    """
    culprit = next(e for e in path.events if e.uid == uid)
    if culprit.order is None:
        return _keeping(path, [e for e in path.events if e.uid != uid], path.end)
    orders = {e.uid: e.order for e in path.events}
    kept = [e for e in path.events if _starts_before(e, orders, culprit.order)]
    return replace(_keeping(path, kept, "undefined"), at=culprit.op, misstep=None, stuck=(), unfinished=())


def _starts_before(event: Event, orders: dict[Uid, int | None], end: int) -> bool:
    order = event.order if event.order is not None else orders.get(event.issue) if event.issue is not None else None
    return order is not None and order < end


def _keeping(path: Path, events: list[Event], end: str) -> Path:
    names = {e.uid for e in events}
    return replace(
        path,
        events=tuple(events),
        end=end,
        constraints=tuple((t, truth) for t, truth in path.constraints if reads_of(t) <= names),
        completes=tuple(pair for pair in path.completes if names.issuperset(pair)),
        tracked=tuple(pair for pair in path.tracked if names.issuperset(pair)),
    )


def culprits(s: Structure, choices: Iterable[Choice]) -> Iterator[tuple[Path, Uid]]:
    """The path and the event of every misuse among the options of some choice."""
    found = {option.misstep[2] for choice in choices for option in choice.options if option.misstep is not None}
    for uid in sorted(found):
        yield s.paths[uid[0]], uid


def name_of(path: Path) -> object:
    """A key that distinguishes the early-stopping paths of a thread."""
    return path.thread, path.end, path.misstep, tuple(e.uid for e in path.events), path.constraints


def variants(path: Path, cut: Cut) -> list[Path]:
    """The paths to the same undefined operation on which some signal never arrives."""
    return [p for p in cut.values() if p.misstep is not None and p.misstep is path.misstep and p.thread == path.thread]


def pools(every: list[list[Path]], cut: Cut) -> list[list[Path]]:
    """The paths of each thread, with those that a misuse cuts short."""
    return [[*paths, *(p for p in cut.values() if p.thread == k)] for k, paths in enumerate(every)]


def combinations_of(every: list[list[Path]], cut: Cut) -> Iterator[tuple[Path, ...]]:
    """The combinations in which some thread stops at undefined behaviour, or a signal never arrives.

    ``cut`` may grow meanwhile: what is added is combined as well. Raises ``Unsupported`` if there are too many.
    """
    tried: set[tuple[int, ...]] = set()
    by_itself = {id(p) for paths in every for p in paths if p.end == "undefined"}
    known = -1
    while known < len(cut):
        known = len(cut)
        short = by_itself | {id(path) for path in cut.values()}
        for found in product(*pools(every, cut)):
            key = tuple(map(id, found))
            if key not in tried and not short.isdisjoint(key):
                tried.add(key)
                if len(tried) > MAX_COMBINATIONS:
                    raise Unsupported("too many combinations of paths beside undefined behaviour")
                yield found


def may_show_new_race(prepared: Prepared, seen: Seen) -> bool:
    """Whether this structure may show a race of instructions for which none has been reported."""
    return any(key_of(prepared, name, (i, j)) not in seen for name, i, j in prepared.may_flag())


def key_of(prepared: Prepared, name: str, pair: tuple[int, int]) -> object:
    """The key by which flagged pairs are reported once: the check, the instructions, and which of them write."""
    parts = []
    for k in pair:
        node = prepared.s.nodes[k]
        if node.source is not None:
            parts.append((node.source.op.span, node.thread, Tag.W in node.source.tags))
    return name, frozenset(parts)


def is_group_overlap(s: Structure, pair: tuple[int, int]) -> bool:
    """Whether a pair are two copies of one cp.async group that write the same bytes: UB106, and not a race as well."""
    first, second = (s.nodes[k] for k in pair)
    if first.thread != second.thread or not (first.has(Tag.CPASYNC) and second.has(Tag.CPASYNC)):
        return False
    misstep = s.paths[first.thread].misstep
    return misstep is not None and misstep.code == "UB106"
