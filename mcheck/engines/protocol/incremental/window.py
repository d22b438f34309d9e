"""An execution as far as it still matters: its live events, and how the relations of a model stand between them.

Events are added one by one, each with the edges of the base relations that lead to it from earlier ones (and, where a
read is stale or a write comes earlier in coherence order, from it back to them). What the model makes of them is
computed by ``mcheck.engines.protocol.incremental.compilation``; where a new edge orders two earlier events, all is
computed again.

Events that nothing can tell apart any more are one (``Window.settle``): a loop that runs on keeps a window of the same
size, however many rounds it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mcheck.engines.protocol.incremental import object_order
from mcheck.engines.protocol.incremental.entries import Check, Entry, Flagged, bits
from mcheck.engines.protocol.incremental.full_evaluation import evaluate
from mcheck.engines.protocol.incremental.generated_code import UNIONS, Known
from mcheck.engines.protocol.incremental.indistinguishable import find_representatives
from mcheck.engines.protocol.incremental.kinds import NOTHING, SET, Shown, is_set
from mcheck.engines.protocol.incremental.state import State, compiled_for

ROOM = 64
"""Slots that are made at a time."""


class Window(State):
    """The live events of one execution under a model: they are added, looked at, taken back and forgotten."""

    def add(self, entry: Entry, *, complete: bool = True) -> tuple[str | None, list[Flagged]]:
        """Adds an event: the axiom that it breaks, if it does, and what the flags say of it.

        ``complete``: whether its conflicts, where ``exact`` does not tell, are between accesses to the same bytes.
        """
        known = self.known(entry)
        step = self.compiled.steps.get(known)
        if step is None:  # one of its own was made for what has been shown
            self._show(known)
            step = self.compiled.step(known)
        slot = entry.slot = self._slot(entry)
        bit = 1 << slot
        self.complete = complete
        out: dict[int, tuple[int, int]] = {}
        dirty = step(self, entry, slot, bit, entry.thread, out, 0)
        self.told, self.newest = out, entry
        self._enter(entry, bit)
        if dirty:
            at_once = (c.name for c in self.checks if c.monotone and out.get(c.node, (0, 0))[0] & bit)
            broken = next(at_once, None)
            return (broken, []) if broken is not None else self._again(entry, bit, out)
        broken = next((c.name for c in self.axioms if c.node in out and self._breaks(c, out, bit)), None)
        return broken, self._flags(out, bit)

    def _flags(self, out: dict[int, tuple[int, int]], bit: int) -> list[Flagged]:
        """What the flags say of the new event."""
        found = []
        for c in self.flags if out else ():
            if c.node in out:
                col, row = out[c.node]
                if col or row:
                    both = col | row
                    found.append(Flagged(c.name, both ^ (both & bit), bool(col & bit)))
        return found

    def look(self, entry: Entry, others: int, *, complete: bool) -> list[Flagged]:
        """What the flags would say of the event that was added last of its conflicts with some ``others``, whose bytes
        are among its own or around them, or not; ``complete``: whether they are the same.
        """
        bit = 1 << entry.slot
        self.complete, self.meets = complete, others
        out: dict[int, tuple[int, int]] = {}
        memo = dict(self.memo)
        self.compiled.look(self.known(entry))(self, entry, entry.slot, bit, entry.thread, out, 0)
        self.memo, self.meets = memo, 0
        return self._flags(out, bit)

    def paired_if_blind(self, reads: int) -> int:
        """The events that some flag would pair with the one that was added last if some reads had seen nothing."""
        assert self.newest is not None
        bit = self.newest.bit
        blind = [(entry, entry.edges) for k in bits(reads) if (entry := self.entries[k]) is not None]
        for entry, edges in blind:
            entry.edges = {name: sources for name, sources in edges.items() if name != "rf"}
        nodes = frozenset(c.node for c in self.flags if c.node not in self.compiled.late)
        values = evaluate(self, nodes)
        for entry, edges in blind:
            entry.edges = edges
        found = 0
        for n in nodes:
            found |= values[n][self.newest.slot] | self._row(values[n], bit)
        return found

    def not_ahead(self, events: int) -> int:
        """Those of some events that no axiom puts before the one that was added last on the object that they share."""
        assert self.newest is not None
        newest = self.newest
        return object_order.find_unordered(
            self.tape, self.told, self.cols, self.compiled.home, newest.sets, events, 1 << newest.slot
        )  # fmt: skip

    @property
    def bound_ahead(self) -> int:
        """The writes that have to be before the one that was added last in coherence order, whichever else are."""
        return self._told_of(self.bounds) & self.exact

    @property
    def known_ahead(self) -> int:
        """The writes that the read that was added last cannot be before
        (``mcheck.engines.protocol.incremental.overwritten``).
        """
        return self._told_of(self.before_reads)

    def _told_of(self, nodes: Iterable[int]) -> int:
        """The events that relations lead from to the one that was added last."""
        out = 0
        for node in nodes:
            out |= self.told.get(node, (0, 0))[0]
        return out

    def _breaks(self, check: Check, out: dict[int, tuple[int, int]], bit: int) -> bool:
        col, row = out.get(check.node, (0, 0))
        if check.test == "irreflexive":
            return bool(col & bit)
        if not bit & self.exact:
            return False
        if check.role in ("bound", "total"):  # pairs that coherence has to hold, in this or in some direction
            after, before = out.get(self.co, (0, 0))
            if check.role == "total":
                after = before = after | before
            col, row = col & ~after, row & ~before
        return bool((col | row) & self.exact)

    @property
    def accesses(self) -> int:
        """The live accesses to memory."""
        return self.keyed["memory"].get(None)

    def _slot(self, entry: Entry) -> int:
        self.count += 1
        entry.time = self.count
        if not self.free:
            size = len(self.entries)
            self.entries += [None] * ROOM
            for column in self.cols.values():
                column += [0] * ROOM
            self.free += range(size + ROOM - 1, size - 1, -1)
        slot = self.free.pop()
        self.entries[slot] = entry
        return slot

    def _show(self, known: Known) -> None:
        """Compiles again where the event has something that none had before."""
        shown = self.shown
        if known.sets <= shown.tags and known.edges <= shown.edges and known.back <= shown.backward:
            return
        back = shown.backward | known.back
        self.shown = Shown(shown.tags | known.sets, shown.edges | known.edges | back, back)
        columns, members = frozenset(self.cols), frozenset(self.masks)  # a node may have been a set, and be none now
        self.compiled = compiled_for(self.tape, self.shown, self.wanted, self.circles)
        self._fit()
        if self.all:
            kept = frozenset((*self.compiled.stored, *self.compiled.masks))
            before = columns.intersection(self.compiled.stored) | members.intersection(self.compiled.masks)
            self._evaluate(kept - before, before)

    def _again(
        self, entry: Entry, bit: int, out: dict[int, tuple[int, int]]
    ) -> tuple[str | None, list[Flagged]]:  # fmt: skip
        """After an edge that orders earlier events: what it may have a part in is computed again."""
        compiled = self.compiled
        kept = frozenset((*compiled.stored, *compiled.masks))
        turned = compiled.turned & {*kept, *(c.node for c in self.checks), self.co} - compiled.late
        values = self._evaluate(turned | ({self.co} if self.co >= 0 else set()), kept - turned)
        broken = None
        for c in self.checks:
            if c.role != "flag" and (self._broken(c, values) if c.node in turned else self._breaks(c, out, bit)):
                broken = c.name
                break
        for c in self.checks:
            if c.role == "flag" and c.node in turned:
                columns = values[c.node]
                out[c.node] = columns[entry.slot], self._row(columns, bit)
        return broken, self._flags(out, bit)

    def _row(self, columns: list[int], bit: int) -> int:
        """The live events that come after an event in a relation."""
        return sum(1 << k for k in bits(self.all) if columns[k] & bit)

    def _broken(self, c: Check, values: dict[int, list[int]]) -> bool:
        columns = values[c.node]
        if c.test == "irreflexive":
            return any(columns[k] >> k & 1 for k in bits(self.all))
        for k in bits(self.exact):
            found = columns[k] & self.exact
            if c.role in ("bound", "total"):
                found &= ~values[self.co][k]
            if c.role == "total" and found:
                found &= ~sum(1 << j for j in bits(found) if values[self.co][j] >> k & 1)
            if found:
                return True
        return False

    def last(self) -> list[tuple[str, int]]:
        """What the flags say that only the end of an execution decides: (name, event)."""
        out = []
        for c in self.checks:
            if c.role == "flag" and c.node in self.compiled.late:
                out += [(c.name, k) for k in bits(self._members(c.node) & self.all)]
        return out

    def _members(self, n: int) -> int:
        """The members of a set that is made of domains, now that they are all there."""
        i = self.tape.code[n]
        kind = self.compiled.kinds
        if kind[n] == NOTHING:
            return 0
        if n in self.domains:
            return self.domains[n]
        if i.op in ("or", "and", "sub") and (kind[n] == SET or n in self.compiled.late):
            a, b = self._members(i.a), self._members(i.b)
            return a | b if i.op == "or" else a & b if i.op == "and" else a & ~b
        if i.op == "seq" and kind[i.a] == SET == kind[i.b]:
            return self._members(i.a) & self._members(i.b)
        if i.op == "base" and is_set(i.name):
            return sum(1 << k for k in bits(self.all) if self._is_in(k, i.name))
        column = evaluate(self, frozenset((n,)))[n]
        return sum(1 << k for k in bits(self.all) if column[k])

    def _evaluate(self, wanted: frozenset[int], known: frozenset[int]) -> dict[int, list[int]]:
        """Some relations between all live events, node by node; those that are kept are set to it."""
        values, compiled = evaluate(self, wanted, known), self.compiled
        for n in wanted & self.cols.keys():
            self.cols[n] = list(values[n])
            self.filled[n] = sum(1 << k for k in bits(self.all) if self.cols[n][k])
        for n in wanted & self.masks.keys():
            self.masks[n] = sum(1 << k for k in bits(self.all) if values[n][k] >> k & 1)
        turned = {k for (n, _), k in compiled.unions.items() if n in compiled.turned}
        self.memo = {key: of for key, of in self.memo.items() if key % UNIONS not in turned}
        self.latest, self.recent = {}, {}
        return values

    def save(self) -> tuple[object, ...]:
        """What ``restore`` needs."""
        return (
            list(self.entries), list(self.free), self.all, self.exact, self.count,
            {n: list(c) for n, c in self.cols.items()}, dict(self.masks),
            {k: dict(m.of) for k, m in self.keyed.items()},
            dict(self.memo), self.shown, self.compiled, dict(self.domains), self.missed, dict(self.filled),
        )  # fmt: skip

    def restore(self, saved: tuple[object, ...]) -> None:
        """Takes back all events since ``save``."""
        state: tuple[Any, ...] = saved
        entries, free, self.all, self.exact, self.count, cols, masks, keyed, memo = state[:9]
        self.shown, self.compiled, domains, self.missed, filled = state[9:]
        self.entries, self.free = list(entries), list(free)
        self.cols = {n: list(c) for n, c in cols.items()}
        self.masks = dict(masks)
        for k, m in keyed.items():
            self.keyed[k].of = dict(m)
        self.memo, self.domains, self.filled = dict(memo), dict(domains), dict(filled)
        self.ends = [mask & self.all for mask in self.ends]
        self.latest, self.recent = {}, {}

    def settle(
        self, pinned: int, deadline: Callable[[], None] = lambda: None, *, every: bool = False,
        together: tuple[int, ...] = (),
    ) -> dict[int, int]:  # fmt: skip
        """Makes one of events that nothing can tell apart any more: (slot that is gone -> slot that stands for it).

        New edges may touch all members of one of the sets ``together``, or none. Unless ``every`` one is to go it is
        not done where few could. ``deadline`` is asked on the way: whatever it raises leaves the window as it was.
        """
        gone = find_representatives(self, pinned, deadline, every=every, together=together)
        if not gone:
            return gone
        keep = self.all & ~sum(1 << k for k in gone)
        self._drop(keep)
        self.all = keep
        for k, other in gone.items():
            entry = self.entries[k]
            assert entry is not None
            entry.stand_in = self.entries[other]
        for k in gone:
            self.entries[k] = None
            self.free.append(k)
        for column in self.cols.values():
            column[:] = [x & keep for x in column]
            for k in gone:
                column[k] = 0
        self.masks = {n: m & keep for n, m in self.masks.items()}
        self.domains = {n: m & keep for n, m in self.domains.items()}
        self.filled = {n: m & keep for n, m in self.filled.items()}
        self.settled = True
        self.memo = {key: (known & keep, result & keep) for key, (known, result) in self.memo.items()}
        self.latest, self.recent = {}, {}
        for k in bits(keep):
            entry = self.entries[k]
            assert entry is not None
            for edges in (entry.edges, entry.back):
                for name, mask in edges.items():
                    edges[name] = mask & keep
        return gone
