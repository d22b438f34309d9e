"""The phases of mbarriers as open choices, with a replay of each solution by the state machine.

A solution is a sequence of operations. The state machine executes them one by one; it has to give every operation the
phase and every wait the result that the solution has, and to stop where the solution stops.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.errors import InternalError
from mcheck.base.phrase import Phrase
from mcheck.engines.z3.clauses import FALSE, Clauses, Side
from mcheck.engines.z3.mbarrier_constraints import Mbarrier
from mcheck.engines.z3.symbolic_choices import Mishap, Token, True_, open_choice
from mcheck.events.choices import mbarrier_phases, mbarrier_tokens
from mcheck.events.choices.candidate import Choice, Option, Pair
from mcheck.events.choices.mbarrier_phases import Step
from mcheck.events.choices.phase_assignment import SIGNALS, Members, Record, find_dependent_operations, option_of
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.semantics.mbarrier import state_parts
from mcheck.semantics.mbarrier_states import copied_value
from mcheck.semantics.terms import Uid
from mcheck.semantics.undefined import Misuse


def phase_choices(s: Structure, stuck: frozenset[Uid]) -> list[Choice]:
    """One open choice per mbarrier object."""
    return [
        open_choice(
            "phase",
            lambda clauses, members=members: Phases(clauses, s, members, stuck),  # type: ignore[misc]
            rank=1,
        )
        for members in mbarrier_phases.members_of(s)
    ]


class Phases:
    """The relations that the phases of one object give."""

    def __init__(self, clauses: Clauses, s: Structure, members: Members, stuck: frozenset[Uid]) -> None:
        self.s, self.members, self.stuck = s, members, stuck
        issued = {e.uid: s.events[e.issue].order or 0 for e, _ in members if e.order is None and e.issue is not None}
        first = frozenset(e.uid for e, _ in members if mbarrier_phases.comes_first(s, e))
        valued = frozenset(e.uid for e, _ in members if mbarrier_tokens.is_supposed(s, e) or _constant(e))
        self.object = Mbarrier(clauses, members, issued, stuck, first, valued)
        self.clauses = clauses
        for uid, admitted in mbarrier_phases.allowed_results(s).items():
            for value in {0, 1} - admitted if uid in self.object.index else ():
                clauses.add(-self.object.returned(self.object.index[uid], value))
        self.number = {node: k for k, (_, node) in enumerate(members)}
        self.never = {
            (node, m): k
            for k, (event, node) in enumerate(members)
            if self.object.is_bad[k] != FALSE
            for m in find_dependent_operations(s, event)
            if m not in self.number
        }
        """The events that would follow an operation if it were not undefined, with its number."""
        self.tracked: dict[int, list[int]] = {}
        for path in s.paths:
            for memory, signal in path.tracked:
                k = self.object.index.get(signal, -1)
                if k >= 0 and self.object.steps[k].kind in SIGNALS:
                    for m in s.nodes_of[memory]:
                        self.tracked.setdefault(m, []).append(k)

    def may(self, relation: str) -> Iterable[Pair]:
        o = self.object
        if relation == "complete":
            waits = [(w, self.members[w][1]) for w in o.waits]
            return [
                (m, n)
                for m, signals in self.tracked.items()
                for w, n in waits
                if any(o.is_possible("phase", k, w) for k in signals)
            ]
        if relation not in ("phase", "phase-order", "phase-fr"):
            return ()
        nodes = list(self.number.items())
        found = [(i, j) for i, a in nodes for j, b in nodes if o.is_possible(relation, a, b)]
        return [*found, *self.never] if relation == "phase-order" else found

    def literal(self, relation: str, i: int, j: int) -> int:
        b = self.number.get(j, -1)
        if relation == "complete":
            signals = self.tracked.get(i, ()) if b >= 0 else ()
            return self.clauses.any_of([self.object.pair("phase", k, b) for k in signals], Side.EXACT)
        if relation == "phase-order" and (i, j) in self.never:
            return self.object.is_bad[self.never[i, j]]
        a = self.number.get(i, -1)
        return self.object.pair(relation, a, b) if a >= 0 and b >= 0 else FALSE

    def missteps(self) -> list[Mishap]:
        o = self.object
        found = [(code, o.events[a].uid, x) for a in range(o.n) for code, x in o.bad[a].items()]
        if o.over_delivered != FALSE:
            found.append(("UB216", o.events[o.culprit].uid, o.over_delivered))
        return found

    def remarks(self) -> list[Mishap]:
        o = self.object
        found = [("UB212", o.events[a].uid, o.unawaited(a)) for a in range(o.n)]
        return [x for x in found if x[2] != FALSE]

    def results(self) -> dict[Uid, dict[int, int] | Token]:
        """The results of waits and arrivals."""
        o = self.object
        out: dict[Uid, dict[int, int] | Token] = {}
        for a, (event, step) in enumerate(zip(o.events, o.steps, strict=True)):
            if step.kind == "wait":
                out[event.uid] = {0: o.returned(a, 0), 1: o.returned(a, 1)}
            elif step.kind in ("arrive", "drop") and event.order is not None:
                constant, shift = state_parts(step.address, no_complete=step.no_complete)
                after = tuple(o.after_phase(a, k) for k in range(o.phases))
                out[event.uid] = Token(o.pending_count(a), after, shift, constant, o.taken[a])
        return out

    def states(self) -> dict[Uid, dict[Uid, int]]:
        """For each wait whose state is a value: the literals that it is what an arrive returned, by that arrive."""
        uids = [e.uid for e in self.object.events]
        return {uids[w]: {uids[u]: x for u, x in given.items()} for w, given in self.object.valued.items()}

    # --- what a solution says -------------------------------------------------------------------------------------

    def decode(self, true: True_) -> Option:
        o = self.object
        place = {a: sum(true(o.precedes(b, a)) for b in range(o.n) if b != a) for a in range(o.n)}
        if sorted(place.values()) != list(range(o.n)):
            raise InternalError("the solver's order of the operations on an mbarrier is none")
        order = [o.events[a].uid for a in sorted(place, key=place.__getitem__)]
        records, misuse, end, beliefs = self._replayed(order, true)
        if true(o.over_delivered):
            over = mbarrier_phases.find_unannounced_bytes(records, end)
            if misuse is not None or over is None:
                raise InternalError("the solver leaves an mbarrier with bytes that the state machine has not")
            misuse = mbarrier_phases.over_delivery(over, o.events[o.culprit].uid)
        self._compare(true, records, misuse)
        known = mbarrier_phases.resolve_beliefs(beliefs, records)
        if known is None:
            raise InternalError("the solver gives a wait a state that no arrive returns")
        return option_of(self.s, self.members, records, misuse, known)

    def _replayed(
        self, uids: list[Uid], true: True_
    ) -> tuple[
        dict[Uid, Record], tuple[str, str | Phrase, Uid] | None, mbarrier_phases.Machine, mbarrier_phases.Beliefs
    ]:
        """Runs the state machine on these operations in this order.

        Returns a record of each, the misuse that stops it or the final state, and the states that waits assume to have.
        """
        sequences = mbarrier_phases.sequences_of(
            self.s, self.members, mbarrier_phases.allowed_results(self.s), self.stuck
        )
        steps: dict[Uid, Step] = {x.event.uid: x for sequence in sequences for x in sequence}
        at = [0] * len(sequences)
        state: mbarrier_phases.Machine = None
        life = -1
        records: dict[Uid, Record] = {}
        beliefs: mbarrier_phases.Beliefs = {}
        given = self.states()
        for uid in uids:
            step = steps[uid]
            if sequences[step.sequence][at[step.sequence]] is not step:
                raise InternalError("the solver's order of the operations on an mbarrier breaks program order")
            if any(at[other] < taken for other, taken in step.after):
                raise InternalError("the solver lets an operation on an mbarrier come before what it waits for")
            at[step.sequence] += 1
            belief = self._meant(given[uid], records, true) if uid in given else None
            outcome = mbarrier_phases.take_step(step, state, life, records, belief)
            beliefs |= mbarrier_phases.list_beliefs(step, belief, outcome)
            if outcome is None:
                raise InternalError("the solver lets a wait go on that has another answer")
            if isinstance(outcome, Misuse):
                return records, (outcome.code, outcome.message, uid), None, beliefs
            state, record = outcome
            life = record.life
            records[uid] = record
        return records, None, state, beliefs

    def _meant(self, given: dict[Uid, int], records: dict[Uid, Record], true: True_) -> mbarrier_phases.Supposition:
        """The state of a wait: one that was returned before it, or will be, or none of them."""
        arrives = [u for u, x in given.items() if true(x)]
        before = [result for u in arrives if u in records and (result := records[u].result) is not None]
        to_come = [u for u in arrives if u not in records and true(self.object.taken[self.object.index[u]])]
        suppositions: list[mbarrier_phases.Supposition] = [
            *before,
            *to_come,
            frozenset(mbarrier_phases.returned_states(records)),
        ]
        return suppositions[0]

    def _compare(self, true: True_, records: dict[Uid, Record], misuse: tuple[str, str | Phrase, Uid] | None) -> None:
        """Checks that the solution and the replay agree on every operation and every pair."""
        o = self.object
        blamed = next(((code, uid) for code, uid, x in self.missteps() if true(x)), None)
        if blamed != (None if misuse is None else (misuse[0], misuse[2])):
            raise InternalError(f"the solver's misuse of an mbarrier is {blamed}, the state machine's {misuse}")
        for a, event in enumerate(o.events):
            record = records.get(event.uid)
            if true(o.taken[a]) is not (record is not None):
                raise InternalError("the solver's operations on an mbarrier end elsewhere than the state machine's")
            if record is None or o.steps[a].kind == "init":
                continue
            phase = sum(true(o.after_phase(a, k)) for k in range(o.phases))
            answer = int(true(o.succeeds(a))) if o.steps[a].kind == "wait" else record.result
            if (phase, answer) != (record.phase, record.result):
                raise InternalError(
                    f"the solver has {event.op.text} in phase {phase}, the state machine in {record.phase}"
                )


def _constant(event: Event) -> bool:
    """Whether this is a wait for a constant state."""
    what = event.mbarrier
    return what is not None and what.state is not None and isinstance(copied_value(what.state), int)
