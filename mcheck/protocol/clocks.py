"""What a thread knows of the others: vector clocks of causality and of time.

A vector has one component per agent (a group of lanes that run together), which counts its operations; one per
mbarrier, which counts the phases whose completion was observed (PTX ISA 9.0 sections 9.7.13.15 and 8.9.1.1: the wait
is the only way to come after a copy); and one per mbarrier for its initialisation. Beside the vector of base
causality stand vectors of coverage: what a proxy fence, or a fence that is restricted to a space, has carried on the
way to here (8.9.5, Q1).

Vectors are never changed in place: whoever learns something gets a new list, so that snapshots cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Vector = list[int]
Key = tuple[object, ...]
"""Names a vector of coverage: its kind first (``pf``, ``pr``, ``pa``, ``cr``, ``tr``, ``ta``), then spaces and
places.
"""


def joined(a: Vector, b: Vector) -> Vector:
    """The component-wise maximum; one of the two themselves where it is that."""
    if a is b:
        return a
    return list(map(max, a, b))


def raised(a: Vector, index: int, value: int) -> Vector:
    """``a`` with component ``index`` at least ``value``."""
    if a[index] >= value:
        return a
    new = a.copy()
    new[index] = value
    return new


@dataclass(frozen=True, slots=True)
class Know:
    """What is handed over: base causality, and the coverage by fences on the way."""

    causal: Vector
    coverage: dict[Key, Vector] = field(default_factory=dict)

    def join(self, other: Know) -> Know:
        """All that either knows."""
        if self is other:
            return self
        return Know(joined(self.causal, other.causal), join_coverage(self.coverage, other.coverage))


def join_coverage(a: dict[Key, Vector], b: dict[Key, Vector]) -> dict[Key, Vector]:
    """The union of two maps of coverage, vectors joined."""
    if not b or a is b:
        return a
    if not a:
        return b
    out = dict(a)
    done: dict[tuple[int, int], Vector] = {}  # kinds that one fence covers share their vectors, and keep sharing them
    for key, vector in b.items():
        mine = out.get(key)
        if mine is None:
            out[key] = vector
        elif mine is not vector:
            pair = id(mine), id(vector)
            both = done.get(pair)
            if both is None:
                both = done[pair] = joined(mine, vector)
            out[key] = both
    return out


@dataclass(frozen=True, slots=True)
class Release:
    """A release pattern: what it hands over, with the scope and the CTA of its thread (PTX ISA 8.7: mutual
    inclusion).
    """

    scope: str
    place: tuple[int, int, int]
    """(gpu, cluster number of the GPU, CTA number)"""
    know: Know


def included(scope: str, here: tuple[int, int, int], there: tuple[int, int, int]) -> bool:
    """Whether the scope of a thread at ``here`` includes a thread at ``there`` (PTX ISA 8.5)."""
    if scope == "cta":
        return here[2] == there[2]
    if scope == "cluster":
        return here[:2] == there[:2]
    if scope == "gpu":
        return here[0] == there[0]
    return True


def mutual(scope: str, here: tuple[int, int, int], other: str, there: tuple[int, int, int]) -> bool:
    """Whether two scopes include each other's threads."""
    return included(scope, here, there) and included(other, there, here)
