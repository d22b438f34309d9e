"""Constraints of an mbarrier object: the order of its operations, their phases, and misuse.

The unknown is a total order of the operations that respects program order and causality. Everything else follows from
it, for every operation by sums over those before it (PTX ISA 9.7.13.15): the pending count, the tx-count, the number of
complete phases. An operation that no state admits is *bad*; operations after it are not executed. With several
``mbarrier.init`` on one path only operations of the same object are summed.

The explicit engine gets the same from the state machine by trying orders (``mcheck.events.choices.mbarrier_phases``).
These constraints do not use that machine, so it can replay a solution as a check: see
``mcheck.engines.z3.phase_replay``.
"""

from __future__ import annotations

from mcheck.engines.z3.clauses import FALSE, TRUE, Clauses, Side
from mcheck.engines.z3.memo import memo
from mcheck.engines.z3.pseudo_boolean import Comparisons, Sum
from mcheck.events.choices.mbarrier_phases import precedes
from mcheck.events.choices.phase_assignment import SIGNALS
from mcheck.events.event import Event, MbarrierStep
from mcheck.semantics.mbarrier import MAX_COUNT
from mcheck.semantics.mbarrier_states import copied_value
from mcheck.semantics.terms import Uid

ARRIVALS = frozenset({"arrive", "drop", "async-arrive"})
TESTS = frozenset({"arrive", "drop", "async-arrive", "complete"})
"""Operations that complete the phase if nothing of it is pending (9.7.13.15.6)."""


class Mbarrier:
    """The operations on one object. ``stuck``: waits that never succeed; they come after all other operations."""

    def __init__(
        self,
        clauses: Clauses,
        members: list[tuple[Event, int]],
        issued: dict[Uid, int],
        stuck: frozenset[Uid],
        first: frozenset[Uid],
        valued: frozenset[Uid] = frozenset(),
    ):
        self.clauses = clauses
        self.sums = Comparisons(clauses)
        self.members = members
        self.events = [e for e, _ in members]
        self.steps = [_step(e) for e in self.events]
        self.n = len(members)
        self.index = {e.uid: k for k, e in enumerate(self.events)}
        self.late = [e.uid in stuck for e in self.events]
        self.inits = self._of("init")
        self.first = {k for k in self.inits if self.events[k].uid in first}
        self.invals = self._of("inval")
        self.waits = self._of("wait")
        self.arrivals = [1 if x.kind == "async-arrive" else x.count * (x.kind in ARRIVALS) for x in self.steps]
        self.bytes = [-(x.tx or 0) if x.kind == "complete" else x.tx or 0 for x in self.steps]
        self.phases = self._most_phases()
        self._order(issued)
        self.valued = {w: self._possible_tokens(w) for w in self.waits if self.events[w].uid in valued}
        self.bad: list[dict[str, int]] = [{} for _ in range(self.n)]
        self.over_delivered = FALSE
        self._taking()

    def _of(self, kind: str) -> list[int]:
        return [k for k, x in enumerate(self.steps) if x.kind == kind]

    def _most_phases(self) -> int:
        """The maximum number of phases that can complete."""
        least = min((self.steps[i].count for i in self.inits), default=1)
        least = max(1, least - sum(x.count for x in self.steps if x.kind == "drop"))
        return sum(self.arrivals) // least

    # --- the order ----------------------------------------------------------------------------------------------

    def _order(self, issued: dict[Uid, int]) -> None:
        """A total order of the operations that respects program order and the events before the issue of a signal."""
        n = self.n
        must = [0] * n
        for a in range(n):
            for b in range(n):
                if a != b and self._comes_first(a, b, issued):
                    must[a] |= 1 << b
        free = [i for i in self.inits if i in self.first and not any(row >> i & 1 for row in must)]
        if free == self.inits and len(free) == 1:
            must[free[0]] = (1 << n) - 1 & ~(1 << free[0])
        for k in range(n):
            for a in range(n):
                if must[a] >> k & 1:
                    must[a] |= must[k]
        self.must = must
        self.variables: dict[tuple[int, int], int] = {}
        for a in range(n):
            for b in range(a + 1, n):
                if not must[a] >> b & 1 and not must[b] >> a & 1:
                    self.variables[a, b] = self.clauses.new()
        for a in range(n):
            for b in range(a + 1, n):
                for c in range(a + 1, n):
                    if b != c:
                        self.clauses.add(-self.precedes(a, b), -self.precedes(b, c), -self.precedes(c, a))

        if free:  # what may come before such an initialisation is told by a flag of the model, from causality
            for a in range(n):
                if a not in self.inits:
                    self.clauses.add(*(self.precedes(i, a) for i in self.inits))

    def _comes_first(self, a: int, b: int, issued: dict[Uid, int]) -> bool:
        x, y = self.events[a], self.events[b]
        if self.late[a] is not self.late[b]:
            return self.late[b]
        if x.uid[0] != y.uid[0] or x.order is None:
            return False
        first = x.uid[1] < y.uid[1] if y.order is not None else x.order < issued[y.uid]
        return first and precedes(x, y)

    def precedes(self, a: int, b: int) -> int:
        """The literal that a precedes b in the order."""
        if self.must[a] >> b & 1:
            return TRUE
        if a == b or self.must[b] >> a & 1:
            return FALSE
        return self.variables[a, b] if a < b else -self.variables[b, a]

    # --- objects one after the other ------------------------------------------------------------------------------

    @memo
    def finds_object_of(self, a: int, i: int) -> int:
        """The literal that a finds the object of init i, if it finds one."""
        if a == i:
            return TRUE
        others = [self._both(self.precedes(i, j), self.precedes(j, a)) for j in self.inits if j not in (i, a)]
        return self.clauses.all_of([self.precedes(i, a), *(-x for x in others)], Side.EXACT)

    @memo
    def precedes_here(self, b: int, a: int) -> int:
        """The literal that b precedes a on the same object."""
        if len(self.inits) < 2:
            return self.precedes(b, a)
        between = [self._both(self.precedes(b, i), self.precedes(i, a)) for i in self.inits if i not in (a, b)]
        if a in self.inits and a != b:
            return FALSE
        return self.clauses.all_of([self.precedes(b, a), *(-x for x in between)], Side.EXACT)

    @memo
    def finds_valid(self, a: int) -> int:
        """The literal that a finds a valid object."""
        found = []
        for i in self.inits:
            if i != a:
                gone = [self._both(self.precedes(i, v), self.precedes(v, a)) for v in self.invals if v != a]
                found.append(self.clauses.all_of([self.precedes(i, a), *(-x for x in gone)], Side.EXACT))
        return self.clauses.any_of(found, Side.EXACT)

    def _both(self, x: int, y: int) -> int:
        return self.clauses.all_of((x, y), Side.EXACT)

    # --- phases ---------------------------------------------------------------------------------------------------

    @memo
    def completes(self, b: int, k: int) -> int:
        """The literal that b completes phase k."""
        return self._both(self.completing[b], self.in_phase(b, k)) if self.steps[b].kind in TESTS else FALSE

    def after_phase(self, a: int, k: int) -> int:
        """The literal that a comes after phase k is complete."""
        if k < 0:
            return TRUE
        if k >= self.phases or self.steps[a].kind == "init":
            return FALSE
        return self.passed[a][k]

    def in_phase(self, a: int, k: int) -> int:
        """The literal that a falls into phase k."""
        return self._both(self.after_phase(a, k - 1), -self.after_phase(a, k))

    @memo
    def pending_count(self, a: int) -> Sum:
        """The pending count that a finds: the arrivals of all phases so far, less those that have arrived."""
        terms: list[tuple[int, int]] = []
        for i in self.inits:
            mine = self.finds_object_of(a, i) if len(self.inits) > 1 else TRUE
            for k in range(self.phases + 1):
                terms.append((self._both(mine, self.after_phase(a, k - 1)), self.steps[i].count))
        for b, x in enumerate(self.steps):
            if b == a:
                continue
            if self.arrivals[b] or x.kind == "increment":
                terms.append((self.precedes_here(b, a), int(x.kind == "increment") - self.arrivals[b]))
            if x.kind == "drop":
                for k in range(self.phases):
                    counted = (self.precedes_here(b, a), -self.after_phase(b, k), self.after_phase(a, k))
                    terms.append((self.clauses.all_of(counted, Side.EXACT), -x.count))
        return Sum.of(terms)

    @memo
    def tx_count(self, a: int) -> Sum:
        """The tx-count that a finds: it is zero whenever a phase completes, so all operations before a count."""
        return Sum.of((self.precedes_here(b, a), self.bytes[b]) for b in range(self.n) if b != a and self.bytes[b])

    @memo
    def expected_count(self, a: int) -> Sum:
        """The expected arrival count of the next phase that a finds."""
        terms = [(self.finds_object_of(a, i) if len(self.inits) > 1 else TRUE, self.steps[i].count) for i in self.inits]
        terms += [(self.precedes_here(b, a), -x.count) for b, x in enumerate(self.steps) if x.kind == "drop" and b != a]
        return Sum.of(terms)

    # --- what is taken, what is bad -------------------------------------------------------------------------------

    def _taking(self) -> None:
        c = self.clauses
        possible = range(self.n)
        self.passed = [[c.new() for _ in range(self.phases)] for _ in possible]
        self.taken = [c.new() for _ in possible]
        self.completing = [c.new() if x.kind in TESTS else FALSE for x in self.steps]
        for a in possible:
            self._phases_of(a)
        for b, x in enumerate(self.steps):
            if x.kind in TESTS:
                nothing_left = (
                    self.taken[b],
                    self.sums.zero(self.pending_count(b).plus(-self.arrivals[b])),
                    self.sums.zero(self.tx_count(b).plus(self.bytes[b])),
                )
                self._same(self.completing[b], c.all_of(nothing_left, Side.EXACT))
        for a in possible:
            reasons = list(self._reasons(a))
            sooner: list[int] = []
            for code, condition in reasons:
                if condition == FALSE:
                    continue
                self.bad[a][code] = self.bad[a].get(code, FALSE)
                mine = c.new()
                c.add(-mine, condition)
                for earlier in sooner:
                    c.add(-mine, -earlier)
                sooner.append(condition)
                self.bad[a][code] = c.any_of((self.bad[a][code], mine), Side.EXACT)
                c.add(-self.taken[a], -condition)
        self.is_bad = [c.any_of(codes.values(), Side.EXACT) for codes in self.bad]
        guilty = [a for a in possible if self.is_bad[a] != FALSE]
        for k, a in enumerate(guilty):
            for b in guilty[k + 1 :]:
                c.add(-self.is_bad[a], -self.is_bad[b])
            for b in possible:
                if a != b:
                    c.add(-self.is_bad[a], -self.precedes(a, b), -self.taken[b])
                    c.add(-self.is_bad[a], -self.precedes(b, a), self.taken[b])
            c.add(-self.is_bad[a], -self.taken[a])
        self.stopped = c.any_of([self.is_bad[a] for a in guilty], Side.EXACT)
        for a in possible:
            c.add(self.stopped, self.taken[a])
        self._too_many_bytes()

    def _same(self, x: int, y: int) -> None:
        self.clauses.add(-x, y)
        self.clauses.add(x, -y)

    def _phases_of(self, a: int) -> None:
        """The number of complete phases that a finds: each was completed by an operation before it."""
        if self.steps[a].kind == "init":
            return
        c = self.clauses
        for k in range(self.phases):
            done = [self._both(self.completes(b, k), self.precedes_here(b, a)) for b in range(self.n) if b != a]
            self._same(self.passed[a][k], c.any_of(done, Side.EXACT))
            if k:
                c.add(-self.passed[a][k], self.passed[a][k - 1])
            if len(self.inits) == 1:  # implied, and seen at once
                least = self.steps[self.inits[0]].count - sum(x.count for x in self.steps if x.kind == "drop")
                arrived = Sum.of((self.precedes_here(b, a), w) for b, w in enumerate(self.arrivals) if w and b != a)
                c.add(-self.passed[a][k], self.sums.at_least(arrived, max(1, least) * (k + 1)))

    def _reasons(self, a: int) -> list[tuple[str, int]]:
        """(code, literal) of all misuses by which an operation may be undefined, in the order in which they are
        checked.
        """
        x, sums = self.steps[a], self.sums
        if x.kind == "init":
            return [("UB202", self.finds_valid(a))] + ([] if 1 <= x.count <= MAX_COUNT else [("UB205", TRUE)])
        out: list[tuple[str, int]] = []
        if self.events[a].order is None and self.invals:
            gone = self.clauses.any_of([self.precedes(v, a) for v in self.invals], Side.EXACT)
            out.append(("UB215", self._both(gone, -self.finds_valid(a))))
        out.append(("UB201", -self.finds_valid(a)))
        if x.kind == "inval":
            return out
        if x.kind == "wait":
            return out + self._wrong_wait(a)
        if x.kind == "increment":
            return [*out, ("UB208", sums.at_least(self.pending_count(a), MAX_COUNT))]
        if x.tx is not None:
            after = self.tx_count(a).plus(self.bytes[a])
            out.append(("UB205", TRUE if x.tx < 0 else sums.at_least(after, MAX_COUNT + 1)))
            out.append(("UB205", -sums.at_least(after, -MAX_COUNT)))
            if x.kind == "expect":
                spent = (sums.zero(self.pending_count(a)), -sums.at_least(self.tx_count(a), 0), sums.zero(after))
                out.append(("UB217", self.clauses.all_of(spent, Side.EXACT)))
        if x.kind in ARRIVALS:
            count = self.arrivals[a]
            if not 1 <= x.count <= MAX_COUNT:
                out.append(("UB205", TRUE))
            out.append(("UB205", -sums.at_least(self.pending_count(a), count)))
            if x.kind == "drop":
                out.append(("UB205", -sums.at_least(self.expected_count(a), count)))
                out.append(("UB207", sums.zero(self.expected_count(a).plus(-count))))
            if x.no_complete:
                left = self.pending_count(a).plus(-count), self.tx_count(a).plus(self.bytes[a])
                out.append(("UB206", self.clauses.all_of(map(sums.zero, left), Side.EXACT)))
        return out

    # --- waits ----------------------------------------------------------------------------------------------------

    @memo
    def succeeds(self, w: int) -> int:
        """The literal that a wait returns true, if it returns."""
        x = self.steps[w]
        if x.parity is not None:
            return self.clauses.any_of(
                [self.in_phase(w, k) for k in range(self.phases + 1) if k & 1 != x.parity], Side.EXACT
            )
        return self._phases_since(w, 1)

    def _phases_since(self, w: int, phases: int) -> int:
        """The literal that so many phases are complete since the arrive that returned the state of w."""
        if w not in self.valued:
            u = self._token(w)
            return FALSE if u < 0 else self._ahead(w, u, phases)
        found = [
            self.clauses.all_of((x, self.precedes(u, w), self._ahead(w, u, phases)), Side.EXACT)
            for u, x in self.valued[w].items()
        ]
        for u, x in self.valued[w].items() if not phases else ():
            late = x, self.precedes_here(w, u), self.taken[u], self._ahead(w, u, 0)
            found += [self.clauses.all_of(late, Side.EXACT)] if self._of_another(u, w) else []
        return self.clauses.any_of(found, Side.EXACT)

    def _of_another(self, u: int, w: int) -> bool:
        """Whether an operation is of another thread, so that a wait may have its state and not observe its effects."""
        return self.events[u].uid[0] != self.events[w].uid[0]

    @memo
    def _ahead(self, w: int, u: int, phases: int) -> int:
        """The literal that w comes so many phases after u."""
        pairs = [(self.in_phase(u, k), self.in_phase(w, k + phases)) for k in range(self.phases + 1 - phases)]
        return self.clauses.any_of([self._both(*pair) for pair in pairs], Side.EXACT)

    def _token(self, w: int) -> int:
        """The arrive that returned the state operand of a wait, -1 if none of this object did."""
        state = self.steps[w].state
        plain = 0 if state is None else copied_value(state)
        u = -1 if isinstance(plain, int) or plain[0] != "e" else self.index.get(plain[1], -1)
        return u if u >= 0 and self._returns_state(u) and self.must[u] >> w & 1 else -1

    def _returns_state(self, u: int) -> bool:
        """Whether an operation returns a state."""
        return self.steps[u].kind in ("arrive", "drop") and self.events[u].order is not None

    def _possible_tokens(self, w: int) -> dict[int, int]:
        """The arrives that may have returned the state operand of a wait, each with the literal that it did."""
        return {
            u: self.clauses.new()
            for u in range(self.n)
            if self._returns_state(u) and (self._of_another(u, w) or not self.must[w] >> u & 1)
        }

    def _wrong_wait(self, w: int) -> list[tuple[str, int]]:
        """The misuse of a wait, if its state operand is neither of the current phase nor of the one before
        (9.7.13.15.16).

        A parity always names one of these.
        """
        if self.steps[w].parity is not None:
            return []
        near = self.clauses.any_of((self._phases_since(w, 0), self._phases_since(w, 1)), Side.EXACT)
        return [("UB210", -near)]

    def returned(self, w: int, value: int) -> int:
        """The literal that a wait returned this value."""
        return self._both(self.taken[w], self.succeeds(w) if value else -self.succeeds(w))

    # --- the end --------------------------------------------------------------------------------------------------

    def _too_many_bytes(self) -> None:
        """Allows a misuse when everything is done: more bytes have come to some object than were expected (UB216)."""
        self.culprit = self._last_completion()
        if self.culprit < 0 or not self.inits:
            return
        c = self.clauses
        ends = []
        for i in self.inits:
            amount = Sum.of((self.finds_object_of(b, i), w) for b, w in enumerate(self.bytes) if w)
            ends.append(-self.sums.at_least(amount, 0))
        end = c.any_of(ends, Side.EXACT)
        if end != FALSE:
            self.over_delivered = c.new()
            c.add(-self.over_delivered, end)
            c.add(-self.over_delivered, -self.stopped)

    def _last_completion(self) -> int:
        """The complete-tx that is blamed: the last signal, else the last operation of the last thread that has one."""
        threads = list(dict.fromkeys(e.uid[0] for e in self.events if e.order is not None))
        place = {
            k: (e.order is None, threads.index(e.uid[0]) if e.order is not None else k, e.uid[1])
            for k, e in enumerate(self.events)
        }
        found = [k for k, x in enumerate(self.steps) if x.kind == "complete"]
        return max(found, key=place.__getitem__, default=-1)

    # --- relations ------------------------------------------------------------------------------------------------

    @memo
    def in_earlier_phase(self, a: int, b: int) -> int:
        """The literal that a falls into an earlier phase than b, or on an earlier object."""
        if self.precedes(a, b) == FALSE:
            return FALSE
        c = self.clauses
        less = self._less(a, b)
        if len(self.inits) < 2:
            return less
        same = self.precedes_here(a, b)
        return c.any_of((self._both(same, less), self._both(self.precedes(a, b), -same)), Side.EXACT)

    @memo
    def _less(self, a: int, b: int) -> int:
        """The literal that a falls into an earlier phase than b, on one object."""
        if "init" in (self.steps[a].kind, self.steps[b].kind):
            return TRUE if self.steps[a].kind == "init" else FALSE
        return self.clauses.any_of(
            [self._both(self.after_phase(b, k), -self.after_phase(a, k)) for k in range(self.phases)], Side.EXACT
        )

    @memo
    def same_phase(self, a: int, b: int) -> int:
        """The literal that both fall into one phase, a before b."""
        inside = [self._both(self.in_phase(a, k), self.in_phase(b, k)) for k in range(self.phases + 1)]
        return self._both(self.precedes_here(a, b), self.clauses.any_of(inside, Side.EXACT))

    def is_possible(self, name: str, a: int, b: int) -> bool:
        """Whether a pair of a relation is possible at all."""
        if a == b or self.must[b] >> a & 1:
            return False
        waits = self.steps[a].kind == "wait", self.steps[b].kind == "wait"
        match name:
            case "phase":
                return self.steps[a].kind == "init" or (self.steps[a].kind in SIGNALS and waits[1] and self.phases > 0)
            case "phase-fr":
                return waits == (True, False)
        return True

    @memo
    def pair(self, name: str, a: int, b: int) -> int:
        """The literal of a pair of ``phase``, ``phase-order`` or ``phase-fr``."""
        if not self.is_possible(name, a, b):
            return FALSE
        c = self.clauses
        both = self._both(self.taken[a], self.taken[b])
        if name == "phase" and self.steps[a].kind == "init":
            stopped = self._both(self.is_bad[a], -self.taken[b])
            by_a = self._both(self.taken[a], self.is_bad[b]) if self.steps[b].kind == "init" else FALSE
            return c.any_of((stopped, by_a), Side.EXACT)
        if name == "phase":
            return c.all_of((both, self.succeeds(b), self.precedes_here(a, b), self._less(a, b)), Side.EXACT)
        if name == "phase-fr":
            ends = TRUE if self.steps[b].kind == "inval" else self.completing[b]
            last = self._both(ends, self.same_phase(a, b)) if ends != FALSE else FALSE
            return self._both(both, c.any_of((self.in_earlier_phase(a, b), last), Side.EXACT))
        come = c.any_of((self.taken[a], self.is_bad[a]), Side.EXACT)
        stopped = self._both(come, -self.taken[b])
        if self.steps[a].kind == "wait":
            return stopped
        first = c.any_of((self.in_earlier_phase(a, b), self._decided(a, b)), Side.EXACT)
        return c.any_of((self._both(both, first), stopped), Side.EXACT)

    def _decided(self, a: int, b: int) -> int:
        """The literal that the phases are what they are because a precedes b in one of them."""
        if "wait" in (self.steps[a].kind, self.steps[b].kind) or "init" in (self.steps[a].kind, self.steps[b].kind):
            return FALSE
        either = self.clauses.any_of((self._decides(a), self._decides(b)), Side.EXACT)
        return FALSE if either == FALSE else self._both(either, self.same_phase(a, b))

    @memo
    def _decides(self, a: int) -> int:
        """The literal that a is an operation as in ``mcheck.events.choices.mbarrier_phases.decides_phases``."""
        x, c = self.steps[a], self.clauses
        if x.kind in ("increment", "inval") or x.no_complete:
            return TRUE
        if x.kind in ARRIVALS:
            return self.sums.zero(self.pending_count(a).plus(-self.arrivals[a]))
        spent = self.sums.zero(self.pending_count(a))
        if x.kind == "expect":
            return spent
        due, left = self.tx_count(a), self.tx_count(a).plus(self.bytes[a])
        crossing = (spent, self.sums.at_least(due, 1), -self.sums.at_least(left, 0))
        return c.any_of((self.completing[a], c.all_of(crossing, Side.EXACT)), Side.EXACT)

    # --- remarks --------------------------------------------------------------------------------------------------

    @memo
    def unawaited(self, a: int) -> int:
        """The literal that an arrival, the first listed in its phase, follows a phase whose end no wait observed
        (UB212).
        """
        if self.steps[a].kind not in ARRIVALS:
            return FALSE
        c = self.clauses
        found = []
        for k in range(1, self.phases + 1):
            others = [self._here(w, a, k, self.succeeds(w)) for w in self.waits] + [
                self._here(b, a, k, TRUE) for b in range(a) if self.steps[b].kind in ARRIVALS
            ]
            found.append(c.all_of([self.in_phase(a, k), *(-x for x in others)], Side.EXACT))
        return c.all_of((-self.stopped, -self.over_delivered, c.any_of(found, Side.EXACT)), Side.EXACT)

    def _here(self, b: int, a: int, k: int, more: int) -> int:
        """The literal that b falls into phase k of the object of a."""
        same = (
            TRUE
            if len(self.inits) < 2
            else self.clauses.any_of((self.precedes_here(a, b), self.precedes_here(b, a)), Side.EXACT)
        )
        return self.clauses.all_of((same, self.in_phase(b, k), more), Side.EXACT)


def _step(event: Event) -> MbarrierStep:
    assert event.mbarrier is not None
    return event.mbarrier
