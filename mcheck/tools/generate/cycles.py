"""Enumeration of cycles of a size over an alphabet, each once.

A cycle is a sequence of arcs up to rotation; its representative is the smallest rotation by the numbers of the arcs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.tools.generate.alphabet import Alphabet, Arc

Cycle = tuple[Arc, ...]


def cycles(alphabet: Alphabet, size: int) -> Iterator[Cycle]:
    """The cycles of ``size`` arcs, in the order of their smallest rotations."""
    arcs = alphabet.arcs
    leaving: dict[object, list[int]] = {}
    for number, arc in enumerate(arcs):
        leaving.setdefault(arc.source, []).append(number)
    path: list[int] = []

    def grow() -> Iterator[Cycle]:
        if len(path) == size:
            if arcs[path[-1]].target != arcs[path[0]].source or _joins(arcs[path[-1]], arcs[path[0]]):
                return
            if _closes([arcs[n] for n in path], alphabet) and _smallest(path):
                yield tuple(arcs[n] for n in path)
            return
        last = arcs[path[-1]]
        for number in leaving.get(last.target, ()):
            # The smallest rotation starts with a smallest arc.
            if number < path[0] or _joins(last, arcs[number]):
                continue
            path.append(number)
            yield from grow()
            path.pop()

    for first in range(len(arcs)):
        path.append(first)
        yield from grow()
        path.pop()


def _closes(cycle: Sequence[Arc], alphabet: Alphabet) -> bool:
    """Whether a cycle returns to its first thread and location, and has both order and communication."""
    if alphabet.copies and not any(arc.source.copied for arc in cycle):
        return False
    far = [arc for arc in cycle if arc.edge.far]
    if far and all(arc.edge.relation == "po" for arc in far):
        return False  # its barriers would wait for each other
    talks = sum(arc.communicates for arc in cycle)
    back = len(far) != 1 and sum(arc.edge.moved for arc in cycle) != 1
    return back and 0 < talks < len(cycle)


def _joins(one: Arc, other: Arc) -> bool:
    """Whether two arcs could be one: both are program order in one thread, with only an access in between."""
    plain = all(a.edge.relation == "po" and not a.edge.far for a in (one, other))
    return plain and not one.source.copied and not one.target.copied and not other.target.copied


def _smallest(path: Sequence[int]) -> bool:
    return all(list(path) <= [*path[n:], *path[:n]] for n in range(1, len(path)))
