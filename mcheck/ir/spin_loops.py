"""Spin loops: loops that repeat a test of memory or of an mbarrier until it succeeds, to no other effect.

One iteration, the one that succeeds, stands for any number of them if three things hold. A failed attempt is repeated:
every path from it leads back, and does nothing but compute, so that no other thread can see it. It asks the same again.
And what failed attempts leave in registers decides nothing afterwards. ``find_way_back`` decides the first two, for
code of any form; the third is a matter of liveness, which its callers add:

* ``mcheck.engines.protocol.analysis.polling`` asks about the operations of a program, whose operands have values;
* ``mcheck.simt.execution.polling_loops`` about the statements of a PTX module, whose operands are registers, and
  whose branches may not be known before the loop ends.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, Protocol, TypeVar

R = TypeVar("R")
"""A register."""

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""The operators of ``setp``."""
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SWAPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The operator for exchanged operands."""


class Step(NamedTuple, Generic[R]):
    """An instruction that no other thread can see.

    ``following`` are the places that may come next; without any the thread ends there, by a trap.
    """

    following: tuple[int, ...]
    reads: AbstractSet[R] = frozenset()
    writes: AbstractSet[R] = frozenset()
    same_each_time: bool = False
    """Whether every iteration computes the same here if the operands are the same in every iteration."""
    is_attempt: bool = False
    """Whether it attempts the same as the attempt in question."""


class Body(Protocol[R]):
    """The code around an attempt."""

    @property
    def asked(self) -> AbstractSet[R]:
        """The registers that say what is attempted."""
        ...

    def step(self, place: int, known: dict[R, int]) -> Step[R] | None:
        """Follow the instruction at a place and update the ``known`` registers.

        ``None`` if others might see it, or if it is not clear what it does.
        """
        ...

    def asks_the_same(self, known: dict[R, int], written: AbstractSet[R]) -> bool:
        """Whether an attempt after these registers were ``written`` asks for the same, as far as values tell."""
        ...


class _Way(NamedTuple, Generic[R]):
    """What has happened since the failed attempt."""

    attempts: tuple[int, ...]
    written: AbstractSet[R]
    varying: AbstractSet[R]
    """The registers that may change in every iteration."""
    same: AbstractSet[R]
    """Those that every iteration sets to the same value."""


def find_way_back(
    body: Body[R], at: int, known: dict[R, int], answer: AbstractSet[R], limit: int
) -> AbstractSet[R] | None:  # fmt: skip
    """Return the registers that failed attempts leave changed; ``None`` if not all paths lead back to the attempt.

    After the attempt at ``at``, which writes ``answer``, these registers are ``known``. ``limit`` bounds the
    instructions of a path.
    """
    nothing: AbstractSet[R] = frozenset()
    left: set[R] = set()
    found = _leads_back(body, at + 1, dict(known), limit, _Way((at,), nothing, answer, nothing), left)
    return left if found else None


def _leads_back(body: Body[R], place: int, known: dict[R, int], limit: int, way: _Way[R], left: set[R]) -> bool:
    """Return whether all paths from a place lead back; add to ``left`` what they leave in registers."""
    attempts, written, varying, same = way
    for budget in range(limit - 1, -1, -1):
        if place in attempts:
            left |= written - same
            return body.asks_the_same(known, written) and not body.asked & varying
        step = body.step(place, known)
        if step is None:
            return False
        if step.is_attempt:
            if body.asked & varying:
                return False
            attempts, written = (*attempts, place), written | step.writes
        elif step.same_each_time and step.reads <= same:
            same |= step.writes
            varying -= step.writes
        else:
            varies = step.reads & (varying | step.writes)
            varying = varying | step.writes if varies else varying - step.writes
            same -= step.writes
            written |= step.writes
        if not step.following:
            return True
        *others, place = step.following
        now = _Way(attempts, written, varying, same)
        if not all(_leads_back(body, other, dict(known), budget, now, left) for other in others):
            return False
    return False
