"""State operands of waits that come through memory or from a computation, not directly from an arrive.

A state is a value like any other (PTX ISA 9.7.13.15.16 says who returns it, not how it travels). Phases are chosen
before values are known, so such a wait supposes what its state is: one that an arrive returned, or none of those that
had been returned. Candidates in which it is something else are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import Unsupported
from mcheck.events.choices.candidate import CircularValue, Undetermined, Valuation
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.semantics.mbarrier_states import copied_value, counted_state
from mcheck.semantics.terms import Term, Uid, Unknown

Belief = int | frozenset[int]
"""What a wait supposes its state to be: this value, or none of these."""

WORD = (1 << 64) - 1
SAMPLES = (0, 1)
"""Contents that are tried where nobody knows what they are."""


def arrive_of(term: Term, event_of: Callable[[Uid], Event]) -> Uid | None:
    """The arrive, on any object, whose returned state a term is."""
    plain = copied_value(term)
    if isinstance(plain, int) or plain[0] != "e":
        return None
    what = event_of(plain[1]).mbarrier
    return plain[1] if what is not None and what.kind in ("arrive", "drop") else None


def is_supposed(s: Structure, event: Event) -> bool:
    """Whether the state of a wait may depend on values that are not known when phases are chosen."""
    what = event.mbarrier
    if what is None or what.kind != "wait" or what.state is None:
        return False
    plain = copied_value(what.state)
    return not isinstance(plain, int) and plain[0] != "?" and arrive_of(plain, s.events.__getitem__) is None


def fits_belief(valuation: Valuation, wait: Uid, belief: Belief) -> bool | None:
    """Whether a wait has the state that its belief says; ``None`` if its value is not known, yet or ever."""
    try:
        value = valuation.term(_state(valuation, wait)) & WORD
    except Unknown:
        return isinstance(belief, frozenset)
    except (Undetermined, CircularValue):
        return None
    return value == belief if isinstance(belief, int) else value not in belief


def is_circular(valuation: Valuation, wait: Uid) -> bool:
    """Whether the state of a wait depends on itself."""
    try:
        valuation.term(_state(valuation, wait))
    except CircularValue:
        return True
    except (Unknown, Undetermined):
        return False
    return False


def check_belief(valuation: Valuation, wait: Uid, belief: Belief) -> None:
    """Raise ``Unsupported`` if it is not known whether an execution has the state that a wait supposes.

    A state that depends on unknown contents is none that an arrive returned if it is none for some of them.
    """
    state = _state(valuation, wait)
    span = valuation.structure.events[wait].op.span
    try:
        valuation.term(state)
    except CircularValue:
        raise Unsupported("a state of an mbarrier that justifies itself, which this model does not forbid") from None
    except Undetermined:
        return
    except Unknown:
        for sample in SAMPLES:
            try:
                value = _Sampled.like(valuation, sample).term(state) & WORD
            except (Unknown, CircularValue, Undetermined):
                continue
            if isinstance(belief, frozenset) and value not in belief:
                return
        raise Unsupported("a state of an mbarrier that depends on unknown contents", span) from None


def may_count(valuation: Valuation, conditions: list[Term]) -> bool:
    """Whether all states that have to have a pending count may have one: what nobody knows is none (UB211)."""
    for condition in conditions:
        try:
            valuation.term(condition)
        except Unknown:
            return False
        except (Undetermined, CircularValue):
            continue
    return True


def check_counts(valuation: Valuation, conditions: list[Term]) -> None:
    """Raises ``Unsupported`` where something has a pending count that is no state which an arrive returned."""
    events = valuation.structure.events
    arrives = [uid for uid, e in events.items() if e.mbarrier is not None and e.mbarrier.no_complete]
    for state in map(counted_state, conditions):
        value = None if state is None else _value(valuation, state)
        if value is not None and all(value != _value(valuation, ("e", uid)) for uid in arrives):
            raise Unsupported("the pending count of a state that was computed")


def _value(valuation: Valuation, term: Term) -> int | None:
    """The value of a term, if it has one."""
    try:
        return valuation.term(term) & WORD
    except (Unknown, Undetermined, CircularValue):
        return None


def _state(valuation: Valuation, wait: Uid) -> Term:
    what = valuation.structure.events[wait].mbarrier
    assert what is not None and what.state is not None
    return what.state


class _Sampled(Valuation):
    """Values in which all unknown contents have one sample value."""

    sample = 0

    @classmethod
    def like(cls, v: Valuation, sample: int) -> _Sampled:
        """The values of a candidate where nothing is unknown."""
        found = cls(v.structure, v.choices, v.candidate, v.reader, v.results)
        found.sample = sample
        return found

    def part(self, term: Term, offset: int, size: int) -> int:
        return super().part(_filled(term, self.sample), offset, size)

    def term(self, term: Term) -> int:
        return super().term(_filled(term, self.sample))


def _filled(term: Term, sample: int) -> Term:
    """A term with an integer for every unknown constant."""
    if isinstance(term, int) or term[0] == "e":
        return term
    return sample if term[0] == "?" else tuple(_filled_part(part, sample) for part in term)


def _filled_part(part: object, sample: int) -> object:
    if not isinstance(part, tuple) or not part:
        return part
    if isinstance(part[0], str):
        return _filled(part, sample)
    return tuple(_filled_part(inner, sample) for inner in part)
