"""CTAs that are alike, any number of them: what they access, in linear forms of their number and of how many there are.

``mcheck.frontend.litmus.alike_ctas.family`` makes them of a sketch, ``mcheck.proofs.cta_pairs`` asks which of the CTAs
may access a common byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass

CTA = "%ctaid"
"""The variable for the number of a CTA."""
NUMBER = "%n"
"""The variable for the constant that is any number."""


class NotAlike(Exception):
    """Raised for what the argument about pairs of CTAs does not cover: a clause, and its location."""

    def __init__(self, why: str, span: Span | None = None) -> None:
        super().__init__(why)
        self.why, self.span = why, span


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` and a sum of variables, each with a coefficient that is not zero; sorted by name."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def plus(self, other: Linear, by: int = 1) -> Linear:
        """The sum with a multiple of another form."""
        found = dict(self.terms)
        for name, factor in other.terms:
            found[name] = found.get(name, 0) + by * factor
        kept = tuple(sorted((name, factor) for name, factor in found.items() if factor))
        return Linear(self.constant + by * other.constant, kept)

    def times(self, by: int) -> Linear:
        """The product with a number."""
        return Linear().plus(self, by)

    def value(self, values: Mapping[str, int]) -> int:
        """The value for these values of the variables."""
        return self.constant + sum(factor * values[name] for name, factor in self.terms)


def variable(name: str) -> Linear:
    """The form that is a variable."""
    return Linear(0, ((name, 1),))


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable of a loop, from ``low`` up to but not including ``high``; or the remainder of ``dividend`` by
    ``high``.
    """

    name: str
    low: Linear
    high: Linear
    dividend: Linear | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyAccess:
    """Weak accesses of an object in global memory by one thread at one place of its code, in a loop all of them; or a
    reduction, if it ``reduces``. If it is ``asynchronous``, its thread does not wait for it.

    ``thread`` is the number of the thread among those of its CTA; ``cta`` that of its CTA, ``None`` for all that are
    alike. ``variables`` are those in ``offset`` and those of the loops around the access, without whose rounds it is
    not executed; each after those in its bounds.
    """

    thread: int
    cta: int | None
    object: str
    offset: Linear
    size: int
    writes: bool
    variables: tuple[Variable, ...] = ()
    asynchronous: bool = False
    reduces: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FamilyCounter:
    """A word of global memory to which each of the CTAs adds one; ``first`` is its initial value. ``waits``: threads
    wait until all have.
    """

    object: str
    offset: int
    size: int
    first: int
    waits: bool


@dataclass(frozen=True, slots=True)
class FamilyTurns:
    """Turns: each of the CTAs waits for the signal of the one before, at ``wait``, and signals the next one, at
    ``signal``. ``value`` is what it signals. ``draws``: CTA k is the one that has drawn the k-th ticket. ``places`` are
    those of the words.
    """

    object: str
    wait: Span
    signal: Span
    value: Linear
    draws: bool
    places: tuple[FamilyAccess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CtaFamily:
    """The CTAs from ``first`` on, ``NUMBER + shift`` being the number behind the last one.

    They do the same, but for the places of their weak accesses and the values that these store. ``sizes`` are those of
    the objects, or less. ``fixed`` are the numbers of the other CTAs.
    """

    parameter: str
    first: int
    shift: int
    fixed: frozenset[int]
    accesses: tuple[FamilyAccess, ...]
    sizes: Mapping[str, Linear]
    counter: FamilyCounter | None
    waits: bool
    """Whether some thread waits for what another CTA does."""
    turns: FamilyTurns | None = None

    def number_with(self, ctas: int) -> int:
        """The value of the parameter with so many CTAs that are alike."""
        return ctas + self.first - self.shift
