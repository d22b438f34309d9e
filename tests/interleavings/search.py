"""Every state that interleavings reach, up to a budget, and what they show for certain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mcheck.ir.condition import And, Compare, ConstTerm, Formula, MemTerm, Not, Or, RegTerm, Term, Truth
from mcheck.ir.program import Program
from tests.interleavings import copies
from tests.interleavings.arithmetic import brought, compares
from tests.interleavings.interpreter import Machine
from tests.interleavings.races import races
from tests.interleavings.state import Misuse, State

BUDGET = 20_000
"""States."""

UNWAITED = frozenset({"UB212"})
LEFT = frozenset({"UB501", "UB502", "UB504"})
"""What ends nothing."""

Final = tuple[tuple[str, int | None], ...]
Trace = tuple[str, ...]


@dataclass(slots=True)
class Found:
    """What interleavings show. ``finals`` and each ``misuse`` (one of the codes is right), race and deadlock come with
    one that leads there. ``holds`` are the answers of the condition to final states. ``whole`` says that all states
    were looked at; otherwise there may be more, but for deadlocks in loops, which are not told.
    """

    states: int = 0
    whole: bool = True
    finals: dict[Final, Trace] = field(default_factory=dict)
    holds: dict[bool, Trace] = field(default_factory=dict)
    misuses: dict[frozenset[str], Trace] = field(default_factory=dict)
    races: dict[tuple[str, str], Trace] = field(default_factory=dict)
    dead: Trace | None = None


def explore(program: Program, budget: int = BUDGET) -> Found:
    """Looks at interleavings, shortest first; raises ``NotCovered``."""
    return _Search(program, budget).run()


class _Search:
    def __init__(self, program: Program, budget: int) -> None:
        self.machine = Machine(program)
        self.condition = program.condition
        self.budget = budget
        self.found = Found()
        self.came: dict[State, tuple[State, str] | None] = {}
        self.before: dict[State, list[State]] = {}
        self.ends: list[State] = []
        self.terms: list[RegTerm | MemTerm] = []
        for term in (*self.condition.locations, *_terms(self.condition.formula)):
            if not isinstance(term, ConstTerm) and term not in self.terms:
                self.terms.append(term)

    def run(self) -> Found:
        first = self.machine.first()
        if isinstance(first, Misuse):
            self.found.misuses[first.codes] = ()
            return self.found
        self.came[first] = None
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            for new in self._look(state):
                waiting.append(new)
            if len(self.came) > self.budget:
                self.found.whole = False
                break
        self.found.states = len(self.came)
        if self.found.whole:
            self._deadlocks()
        return self.found

    def _look(self, state: State) -> list[State]:
        """Takes note of a state; the new ones behind it."""
        for pair in races(self.machine, state):
            if pair not in self.found.races:
                self.found.races[pair] = self.trace(state)
        if copies.left_behind(self.machine.declared, state):
            self._misuse(LEFT, state, "the end of a CTA")
        new: list[State] = []
        moved = False
        for step in self.machine.steps(state):
            moved = moved or step.after != state
            if isinstance(step.after, Misuse):
                self._misuse(step.after.codes, state, step.text)
                self.ends.append(state)
            elif step.after is None:
                self.ends.append(state)
            else:
                if any(o.missed for _, o in step.after.objects):
                    self._misuse(UNWAITED, state, step.text)
                self.before.setdefault(step.after, []).append(state)
                if step.after not in self.came:
                    self.came[step.after] = state, step.text
                    new.append(step.after)
        if not moved:
            self._stopped(state)
        return new

    def _stopped(self, state: State) -> None:
        if any(o.owed for _, o in state.objects):
            self._misuse(UNWAITED, state, "the end")
        if all(t.over for t in state.threads):
            self.ends.append(state)
            self._final(state)
        elif self.found.dead is None:
            self.found.dead = self.trace(state)

    def _misuse(self, codes: frozenset[str], state: State, text: str) -> None:
        if codes not in self.found.misuses:
            self.found.misuses[codes] = (*self.trace(state), text)

    def _deadlocks(self) -> None:
        """States from which no way leads to an end: whoever is left there goes round forever."""
        may_end = set(self.ends)
        waiting = list(may_end)
        while waiting:
            for earlier in self.before.get(waiting.pop(), ()):
                if earlier not in may_end:
                    may_end.add(earlier)
                    waiting.append(earlier)
        for state in self.came:
            if state not in may_end and self.found.dead is None:
                self.found.dead = self.trace(state)

    def trace(self, state: State) -> Trace:
        """The steps that lead to a state."""
        found = []
        while (step := self.came[state]) is not None:
            state, text = step
            found.append(text)
        return tuple(reversed(found))

    # --- final states -------------------------------------------------------------------------------------

    def _final(self, state: State) -> None:
        final = tuple((term.label, self._value(state, term)) for term in self.terms)
        passes = self._holds(state, self.condition.filter)
        if passes:
            self.found.finals.setdefault(final, self.trace(state))
            holds = self._holds(state, self.condition.formula)
            if holds is not None:
                self.found.holds.setdefault(holds, self.trace(state))

    def _value(self, state: State, term: Term) -> int | None:
        match term:
            case ConstTerm(value):
                return value
            case RegTerm():
                names = self.machine.names[term.thread]
                value = state.threads[term.thread].registers[names[term.reg]] if term.reg in names else None
                return value if isinstance(value, int) else None
            case MemTerm():
                found = self.machine.store.read(state, self.machine.store.place(term.address, term.size), term.size)
                return None if found is None else brought(term.type, found)

    def _holds(self, state: State, formula: Formula) -> bool | None:
        """Whether a condition holds; nothing if it depends on what nobody knows."""
        match formula:
            case Truth(value):
                return value
            case Not(part):
                inner = self._holds(state, part)
                return None if inner is None else not inner
            case And(parts) | Or(parts):
                found = [self._holds(state, part) for part in parts]
                decisive = isinstance(formula, Or)
                if decisive in found:
                    return decisive
                return None if None in found else not decisive
            case Compare(op, left, right):
                a, b = self._value(state, left), self._value(state, right)
                return None if a is None or b is None else compares(op, a, b)


def _terms(formula: Formula) -> list[Term]:
    match formula:
        case Compare(_, left, right):
            return [left, right]
        case Not(part):
            return _terms(part)
        case And(parts) | Or(parts):
            return [term for part in parts for term in _terms(part)]
    return []
