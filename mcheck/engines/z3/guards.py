"""Guards: which events are in an execution of a structure that holds several paths of a thread.

Every literal of a relation is about executions that have both events; so an order that holds whenever both exist is a
constant, as on a single path. An intermediate event has to exist too: see ``here``.
"""

from __future__ import annotations

from mcheck.answers.final_states import final_addresses
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.bounds import Bases, Bounds, bound_nodes
from mcheck.cat.algebra.tape import Instr, Tape
from mcheck.engines.z3.clauses import TRUE, Clauses, Side
from mcheck.engines.z3.path_merge import Joined
from mcheck.events.structure import Structure
from mcheck.semantics.terms import Uid


class Guards:
    """The alternatives of each thread as literals of which one holds, and the events of each."""

    def __init__(self, s: Structure, threads: list[Joined], clauses: Clauses) -> None:
        self.clauses = clauses
        self.threads = threads
        self.by_thread = {joined.path.thread: joined for joined in threads}
        self.taken: dict[int, list[int]] = {}
        for joined in threads:
            count = len(joined.alternatives)
            literals = self.taken[joined.path.thread] = [clauses.new() for _ in range(count)] if count > 1 else [TRUE]
            clauses.exactly_one(literals)
        self.n = s.size
        self.thread = [node.thread for node in s.nodes]
        self.mask = [0 if x.source is None else self.by_thread[x.thread].masks[x.source.uid] for x in s.nodes]
        every = [0 if x.source is None else self.by_thread[x.thread].all_mask for x in s.nodes]
        self.always = [mask == whole for mask, whole in zip(self.mask, every, strict=True)]
        self.users = self._users(s)
        self.together, self.implied = bits.empty(self.n), bits.empty(self.n)
        for i in range(self.n):
            for j in range(self.n):
                same = self.thread[i] == self.thread[j] >= 0 and not self.always[i] and not self.always[j]
                if not same or self.mask[i] & self.mask[j]:
                    self.together[i] |= 1 << j
                if self.always[j] or (same and not self.mask[i] & ~self.mask[j]) or i in (j, *self.users.get(j, ())):
                    self.implied[i] |= 1 << j
        self.implying = bits.inverse(self.implied)

    def _users(self, s: Structure) -> dict[int, list[int]]:
        """The accesses of bytes that only some alternatives access, by their initial writes.

        Without these accesses the initial write is no event. Bytes that the condition names have one in every
        execution.
        """
        asked = set(final_addresses(s, s.program.condition))
        found = {}
        for address, (first, *_) in s.writes.items():
            users = [k for k in (*s.writes[address], *s.reads[address]) if k != first]
            if address not in asked and not any(self.always[k] for k in users):
                found[first] = users
                self.always[first] = False
        return found

    def any_taken(self, thread: int, mask: int) -> int:
        """The literal that one of these alternatives is taken."""
        if mask == self.by_thread[thread].all_mask:
            return TRUE
        return self.clauses.any_of([self.taken[thread][k] for k in bits.bits(mask)], Side.EXACT)

    def here(self, i: int) -> int:
        """The literal that an event is in the execution."""
        if i in self.users:
            return self.clauses.any_of([self.here(k) for k in self.users[i]], Side.EXACT)
        return TRUE if self.always[i] else self.any_taken(self.thread[i], self.mask[i])

    def with_both(self, a: Uid, b: Uid) -> int:
        """The alternatives of a thread that have both events."""
        masks = self.by_thread[a[0]].masks
        return masks[a] & masks[b]

    # --- bounds ------------------------------------------------------------------------------------------------

    def compose(self, a: Rows, b: Rows) -> Rows:
        """The definite pairs of a composition: the intermediate event exists whenever one of the ends does."""
        out = []
        for i, row in enumerate(a):
            found = 0
            for z in bits.bits(row):
                found |= b[z] if self.implied[i] >> z & 1 else b[z] & self.implying[z]
            out.append(found & self.together[i])
        return out

    def closure(self, a: Rows) -> Rows:
        """The transitive closure of definite pairs."""
        out = list(a)
        for k in range(self.n):
            for i in range(self.n):
                if out[i] >> k & 1:
                    out[i] |= (out[k] if self.implied[i] >> k & 1 else out[k] & self.implying[k]) & self.together[i]
        return out

    def _low(self, i: Instr, low: list[Rows], high: list[Rows]) -> Rows:
        """The lower bound of a node, restricted to pairs whose intermediate events exist."""
        zero = bits.empty(self.n)
        match i.op:
            case "sub":
                return bits.apply_operation("sub", low[i.a], high[i.b], zero)
            case "comp" | "compset":
                return bits.apply_operation(i.op, high[i.a], zero, zero)
            case "seq":
                return self.compose(low[i.a], low[i.b])
            case "plus":
                return self.closure(low[i.a])
            case "star":
                return bits.union(self.closure(low[i.a]), bits.identity(self.n))
            case "dom":
                return [(1 << x) if row & self.implied[x] else 0 for x, row in enumerate(low[i.a])]
            case "rng":
                return [(1 << x) if row & self.implied[x] else 0 for x, row in enumerate(bits.inverse(low[i.a]))]
        return bits.apply_operation(i.op, low[i.a] if i.a >= 0 else zero, low[i.b] if i.b >= 0 else zero, zero)

    def _high(self, i: Instr, low: list[Rows], high: list[Rows]) -> Rows:
        zero = bits.empty(self.n)
        if i.op in ("comp", "compset"):
            return bits.apply_operation(i.op, low[i.a], zero, zero)
        second = low if i.op == "sub" else high
        return bits.apply_operation(i.op, high[i.a] if i.a >= 0 else zero, second[i.b] if i.b >= 0 else zero, zero)

    def bound(self, tape: Tape, bases: Bases) -> Bounds:
        """The static bounds of all nodes, for executions that have both events of a pair."""
        size, zero = len(tape.code), bits.empty(self.n)
        low: list[Rows] = [zero] * size
        high: list[Rows] = [zero] * size

        def node(k: int) -> None:
            i = tape.code[k]
            if i.op == "base":
                low[k], high[k] = bases(i.name)
            else:
                low[k], high[k] = self._low(i, low, high), self._high(i, low, high)
            low[k], high[k] = bits.meet(low[k], self.together), bits.meet(high[k], self.together)

        found = Bounds(low, high)
        bound_nodes(tape, found, node, zero)
        return found
