"""The state operands of mbarrier instructions as terms (PTX ISA 9.7.13.15.16, 9.7.13.15.17)."""

from __future__ import annotations

from mcheck.semantics.mbarrier import MAX_COUNT, NO_COMPLETE
from mcheck.semantics.terms import Term


def copied_value(term: Term) -> Term:
    """What a term is the whole 64-bit value of."""
    while not isinstance(term, int):
        match term:
            case ("raw", 8, a) | ("typed", "s64", a):
                term = a
            case ("alu", "mov", "b64" | "u64" | "s64", _, (a,), 0):
                term = a
            case _:
                break
    return term


def has_count(state: Term) -> Term:
    """The condition that a state has a pending count."""
    return ("x", "&&", ("x", "&", state, NO_COMPLETE), ("x", "&", state, MAX_COUNT))


def counted_state(condition: Term) -> Term | None:
    """The state of which a condition says that it has a pending count."""
    match condition:
        case ("x", "&&", ("x", "&", int() | tuple() as state, low), _) if low == NO_COMPLETE:
            return state if condition == has_count(state) else None
    return None
