"""The window: the live events of a growing execution, and the relations of a model among them.

Events are added one by one, each with the edges of the base relations that lead to it from earlier ones (and, where a
read is stale or a write comes earlier in coherence order, from it back to them). The derived relations are computed by
``mcheck.engines.protocol.incremental.compilation``; where a new edge orders two earlier events, all are computed again.

Events that no later event can distinguish are merged (``Window.merge_indistinguishable``): a loop keeps a window of
constant size, however many iterations it executes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mcheck.base.declared_state import (
    IN_OWNER,
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    declare_state,
    listed,
    mapped,
    optional,
    state,
)
from mcheck.engines.protocol.incremental import object_order
from mcheck.engines.protocol.incremental.compilation import Turned
from mcheck.engines.protocol.incremental.entries import Check, Entry, Flagged, bits
from mcheck.engines.protocol.incremental.full_evaluation import evaluate, needs_closure
from mcheck.engines.protocol.incremental.generated_code import TURNED, UNIONS, Known
from mcheck.engines.protocol.incremental.indistinguishable import find_representatives
from mcheck.engines.protocol.incremental.kinds import NOTHING, SET, Shown, is_set
from mcheck.engines.protocol.incremental.state import State, compiled_for
from mcheck.engines.protocol.state.naming import CACHE, CONSTANT, EVENT_SETS, NUMBER, OF_PROGRAM, RELATION

SLOTS = 64
"""Slots that are added at a time."""


class Window(State):
    """The live events of one execution under a model: add, undo, merge."""

    def add(self, entry: Entry, *, complete: bool = True, flags: bool = True) -> tuple[str | None, list[Flagged]]:
        """Add an event and return the axiom that it violates, if any, and the flags that hold of it.

        ``complete``: conflicts with accesses that are not ``exact`` are between accesses to the same bytes. Unless
        ``flags`` are asked for, what they alone need is not kept up, and the event has to be removed again.
        """
        if self.histories is not None:
            self.past = self.histories.after_event(self.past, entry, complete=complete, flags=flags)
        known = self.known(entry)
        step = self.compiled.steps.get(known)
        if step is None:  # one of its own was made for what has been shown
            self._extend_shown(known)
            step = self.compiled.step(known)
        slot = entry.slot = self._slot(entry)
        bit = 1 << slot
        self.complete = complete
        out: dict[int, tuple[int, int]] = {}
        dirty = step(self, entry, slot, bit, entry.thread, out, 0)
        self.relations, self.newest = out, entry
        self._enter(entry, bit)
        if dirty & TURNED:
            at_once = (c.name for c in self.checks if c.monotone and out.get(c.node, (0, 0))[0] & bit)
            broken = next(at_once, None)
            return (broken, []) if broken is not None else self._recompute(entry, bit, out, flags=flags)
        if dirty:
            self._forget_unions()
        broken = next((c.name for c in self.axioms if c.node in out and self._violates_now(c, out, bit)), None)
        return broken, self._flags(out, bit) if flags else []

    def find_relations_of(self, entry: Entry) -> tuple[dict[int, int], dict[int, int]]:
        """Return how an event would be related if it was added, and leave the window as it is: by node the events that
        lead to it, and the sets that it would be in.
        """
        known = self.known(entry)
        if known not in self.compiled.steps:
            self._extend_shown(known)
        step = self.compiled.step(known)
        before = dict(self.masks), dict(self.domains), dict(self.filled), dict(self.memo), self.missed
        slot = entry.slot = self._slot(entry)
        self.complete, self.turned = True, []
        dirty = step(self, entry, slot, 1 << slot, entry.thread, {}, 0)
        found = self._relations_at(slot)
        for n, targets in self.turned:
            for k in bits(targets):
                self.cols[n][k] &= ~(1 << slot)
        self.turned = None
        for column in self.cols.values():
            column[slot] = 0
        self.entries[slot] = None
        self.free.append(slot)
        self.count -= 1
        self.masks, self.domains, self.filled, self.memo, self.missed = before
        self.latest, self.recent = {}, {}
        if dirty & TURNED:  # it would order earlier events
            saved = self.save()
            self.add(entry)
            found = self._relations_at(entry.slot)
            self.restore(saved)
        return found

    def _relations_at(self, slot: int) -> tuple[dict[int, int], dict[int, int]]:
        """Return the columns of an event, and the sets that it is in."""
        member_sets = {n: members >> slot & 1 for n, members in self.masks.items()}
        return {n: column[slot] for n, column in self.cols.items()}, member_sets

    def _flags(self, out: dict[int, tuple[int, int]], bit: int) -> list[Flagged]:
        """Return the flags that hold of the new event."""
        found = []
        for c in self.flags if out else ():
            if c.node in out:
                col, row = out[c.node]
                if col or row:
                    both = col | row
                    found.append(Flagged(c.name, both ^ (both & bit), bool(col & bit)))
        return found

    def check_conflicts(self, entry: Entry, others: int, *, complete: bool) -> list[Flagged]:
        """Return the flags that would hold of the last added event if it conflicted with ``others``.

        The bytes of ``others`` overlap its own; ``complete``: they are the same bytes.
        """
        bit = 1 << entry.slot
        self.complete, self.meets = complete, others
        out: dict[int, tuple[int, int]] = {}
        memo = dict(self.memo)
        self.compiled.recheck_step(self.known(entry))(self, entry, entry.slot, bit, entry.thread, out, 0)
        self.memo, self.meets = memo, 0
        return self._flags(out, bit)

    def find_pairs_without_reads(self, reads: int) -> int:
        """Return the events that some flag would relate to the last added one if these reads had observed nothing."""
        assert self.newest is not None
        bit = self.newest.bit
        blind = [(entry, entry.edges) for k in bits(reads) if (entry := self.entries[k]) is not None]
        for entry, edges in blind:
            entry.edges = {name: sources for name, sources in edges.items() if name != "rf"}
        nodes = frozenset(c.node for c in self.flags if c.node not in self.compiled.deferred)
        values = evaluate(self, nodes)
        for entry, edges in blind:
            entry.edges = edges
        found = 0
        for n in nodes:
            found |= values[n][self.newest.slot] | self._collect_targets(values[n], bit)
        return found

    def find_unordered(self, events: int) -> int:
        """Return those of some events that no axiom orders before the last added one on the object that they share."""
        assert self.newest is not None
        newest = self.newest
        return object_order.find_unordered(
            self.tape, self.relations, self.cols, self.compiled.home, newest.sets, events, 1 << newest.slot
        )  # fmt: skip

    def forget_relations(self) -> None:
        """Give back the memory of an execution that is over, and of which only the trace is still asked for."""
        self.cols, self.memo, self.latest, self.recent = {}, {}, {}, {}

    @property
    def forced_predecessors(self) -> int:
        """The writes that must precede the last added one in coherence order."""
        return self._collect_sources(self.bounds) & self.exact

    @property
    def overwritten_writes(self) -> int:
        """The writes that the last added read cannot return (``mcheck.engines.protocol.incremental.overwritten``)."""
        return self._collect_sources(self.before_reads)

    def _collect_sources(self, nodes: Iterable[int]) -> int:
        """Return the sources of some relations that lead to the last added event."""
        out = 0
        for node in nodes:
            out |= self.relations.get(node, (0, 0))[0]
        return out

    def _violates_now(self, check: Check, out: dict[int, tuple[int, int]], bit: int) -> bool:
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
            self.entries += [None] * SLOTS
            for column in self.cols.values():
                column += [0] * SLOTS
            self.free += range(size + SLOTS - 1, size - 1, -1)
        slot = self.free.pop()
        self.entries[slot] = entry
        return slot

    def _extend_shown(self, known: Known) -> None:
        """Compile the model again if the event has a tag or an edge that none had before."""
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

    def _recompute(
        self, entry: Entry, bit: int, out: dict[int, tuple[int, int]], *, flags: bool
    ) -> tuple[str | None, list[Flagged]]:  # fmt: skip
        """Recompute the relations after an edge that orders earlier events."""
        turned, known, first, for_axioms = self.compiled.turned or self._find_turned()
        if not flags:
            turned = for_axioms
        coherence = frozenset((self.co,) if self.co >= 0 else ())
        given = evaluate(self, frozenset(c.node for c in first) | coherence, known)
        broken = next((c.name for c in first if self._is_violated(c, given)), None)
        if broken is not None:
            return broken, []
        values = self._evaluate(turned | coherence, known, given)
        for c in self.checks:
            if c.role != "flag" and (
                self._is_violated(c, values) if c.node in turned else self._violates_now(c, out, bit)
            ):
                broken = c.name
                break
        if not flags:
            return broken, []
        for c in self.checks:
            if c.role == "flag" and c.node in turned:
                columns = values[c.node]
                out[c.node] = columns[entry.slot], self._collect_targets(columns, bit)
        return broken, self._flags(out, bit)

    def _find_turned(self) -> Turned:
        """Return what is computed again. First come axioms that follow from what is known in a few steps, such as the
        atomicity of 8.10.3: their nodes take a small part of the time that causality order takes.
        """
        compiled = self.compiled
        kept = frozenset((*compiled.stored, *compiled.masks))
        nodes = compiled.reordering & {*kept, *(c.node for c in self.checks), self.co} - compiled.deferred
        first = tuple(c for c in self.axioms if c.node in nodes and not needs_closure(self, c.node, kept - nodes))
        asked = compiled.sources_of(n for n in self.wanted if n not in self.flagged)
        found = compiled.turned = Turned(nodes, kept - nodes, first, nodes & asked)
        return found

    def _collect_targets(self, columns: list[int], bit: int) -> int:
        """Return the live events that a relation leads to from an event."""
        return sum(1 << k for k in bits(self.all) if columns[k] & bit)

    def _is_violated(self, c: Check, values: dict[int, list[int]]) -> bool:
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

    def find_final_flags(self) -> list[tuple[str, int]]:
        """Return the flags that only the end of an execution decides, as (name, event)."""
        out = []
        for c in self.checks:
            if c.role == "flag" and c.node in self.compiled.deferred:
                out += [(c.name, k) for k in bits(self._members(c.node) & self.all)]
        return out

    def _members(self, n: int) -> int:
        """Return the members of a set that is built from domains, once the execution is complete."""
        i = self.tape.code[n]
        kind = self.compiled.kinds
        if kind[n] == NOTHING:
            return 0
        if n in self.domains:
            return self.domains[n]
        if i.op in ("or", "and", "sub") and (kind[n] == SET or n in self.compiled.deferred):
            a, b = self._members(i.a), self._members(i.b)
            return a | b if i.op == "or" else a & b if i.op == "and" else a & ~b
        if i.op == "seq" and kind[i.a] == SET == kind[i.b]:
            return self._members(i.a) & self._members(i.b)
        if i.op == "base" and is_set(i.name):
            return sum(1 << k for k in bits(self.all) if self._is_in(k, i.name))
        column = evaluate(self, frozenset((n,)))[n]
        return sum(1 << k for k in bits(self.all) if column[k])

    def _evaluate(
        self, wanted: frozenset[int], known: frozenset[int], given: dict[int, list[int]] | None = None
    ) -> dict[int, list[int]]:  # fmt: skip
        """Evaluate some relations over all live events and store those that are kept."""
        values = evaluate(self, wanted, known, given)
        for n in wanted & self.cols.keys():
            self.cols[n] = list(values[n])
            self.filled[n] = sum(1 << k for k in bits(self.all) if self.cols[n][k])
        for n in wanted & self.masks.keys():
            self.masks[n] = sum(1 << k for k in bits(self.all) if values[n][k] >> k & 1)
        self._forget_unions()
        return values

    def _forget_unions(self) -> None:
        """Forget the unions over columns that a new event may add to."""
        turned = {k for (n, _), k in self.compiled.unions.items() if n in self.compiled.reordering}
        self.memo = {key: of for key, of in self.memo.items() if key % UNIONS not in turned}
        self.latest, self.recent = {}, {}

    def save(self) -> tuple[object, ...]:
        """Return a snapshot for ``restore``."""
        return (
            list(self.entries), list(self.free), self.all, self.exact, self.count,
            {n: list(c) for n, c in self.cols.items()}, dict(self.masks),
            {k: m.copy() for k, m in self.keyed.items()}, dict(self.instructions),
            dict(self.memo), self.shown, self.compiled, dict(self.domains), self.missed, dict(self.filled),
            self.past,
        )  # fmt: skip

    def restore(self, saved: tuple[object, ...]) -> None:
        """Undo all additions since ``save``, once: what it has copied is not copied again."""
        state: tuple[Any, ...] = saved
        self.entries, self.free, self.all, self.exact, self.count, self.cols, self.masks, self.keyed = state[:8]
        self.instructions, self.memo, self.shown, self.compiled, self.domains, self.missed, self.filled = state[8:15]
        self.past = state[15]
        self.ends.drop(self.all)
        self.latest, self.recent = {}, {}

    def merge_indistinguishable(
        self, pinned: int, deadline: Callable[[], None] = lambda: None, *, every: bool = False,
        together: tuple[int, ...] = (),
    ) -> dict[int, int]:  # fmt: skip
        """Merge events that no later event can distinguish, and return (removed slot -> slot that represents it).

        New edges touch all members of one of the sets ``together``, or none. Unless ``every`` is set, nothing is done
        where few events could go. ``deadline`` is called on the way: if it raises, the window is unchanged.
        """
        gone = find_representatives(self, pinned, deadline, every=every, together=together)
        if not gone:
            return gone
        if self.histories is not None:
            self.past = self.histories.after(self.past, tuple(gone.items()))
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
        masked: dict[int, int] = {}  # by the identity of a column, which several events and nodes may share
        for column in self.cols.values():
            for k in gone:
                column[k] = 0
            for k, x in enumerate(column):
                if x:
                    left = masked.get(id(x))
                    if left is None:
                        left = masked[id(x)] = x & keep
                    column[k] = left
        self.masks = {n: m & keep for n, m in self.masks.items()}
        self.domains = {n: m & keep for n, m in self.domains.items()}
        self.filled = {n: m & keep for n, m in self.filled.items()}
        self.has_merged = True
        self.memo = {key: (known & keep, result & keep) for key, (known, result) in self.memo.items()}
        self.latest, self.recent = {}, {}
        for k in bits(keep):
            entry = self.entries[k]
            assert entry is not None
            for edges in (entry.edges, entry.back):
                for name, mask in edges.items():
                    edges[name] = mask & keep
        return gone


OF_NEWEST = Unnamed("asked of the newest event, within the step that added it")
MEMO = Attribute(SHALLOW, CACHE)
REPLAYED = Attribute(
    SHARED, Unnamed("only executions that are replayed have a numbered history, and no proof follows one")
)

declare_state(
    Window,
    program=CONSTANT,
    tape=CONSTANT,
    checks=CONSTANT,
    flags=CONSTANT,
    flagged=CONSTANT,
    axioms=CONSTANT,
    co=CONSTANT,
    bounds=CONSTANT,
    before_reads=CONSTANT,
    wanted=CONSTANT,
    circles=CONSTANT,
    relations=Attribute(SHALLOW, OF_NEWEST),
    newest=Attribute(optional(state("Entry")), OF_NEWEST),
    shown=VALUE,
    entries=Attribute(listed(optional(state("Entry"))), IN_OWNER),
    free=Attribute(SHALLOW, CACHE),
    all=Attribute(SHARED, IN_OWNER),
    exact=Attribute(SHARED, CACHE),
    count=NUMBER,
    cols=Attribute(mapped(SHALLOW), RELATION),
    last_columns=Attribute(SHALLOW, OF_NEWEST),
    filled=Attribute(SHALLOW, Unnamed("to visit a column that is empty adds nothing to a union")),
    masks=Attribute(SHALLOW, EVENT_SETS),
    keyed=Attribute(mapped(SHALLOW), CACHE),
    instructions=Attribute(SHALLOW, CACHE),
    equal=Attribute(SHALLOW, CACHE),
    equal_before=Attribute(SHALLOW, CACHE),
    sorts=Attribute(SHARED, OF_PROGRAM),
    ends=Attribute(SHALLOW, CACHE),
    class_count=Attribute(SHARED, CACHE),
    latest=MEMO,
    recent=MEMO,
    memo=Attribute(SHALLOW, Unnamed("emptied before a form is built, as the unions may name events that are gone")),
    complete=Attribute(SHARED, OF_NEWEST),
    meets=Attribute(SHARED, OF_NEWEST),
    domains=Attribute(SHALLOW, EVENT_SETS),
    missed=VALUE,
    turned=Attribute(SHARED, OF_NEWEST),
    has_merged=VALUE,
    histories=REPLAYED,
    past=REPLAYED,
    compiled=Attribute(SHARED, CACHE),
)
