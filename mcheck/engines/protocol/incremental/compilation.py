"""Compilation of a cat model (a tape) to a Python function that computes the relations of one new event.

``mcheck.engines.protocol.incremental.generated_code`` writes the code of each node. Beside the function for an
arbitrary event there is a specialised one for every kind of event that is frequent: most of a model is empty for most
kinds.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import NamedTuple

from mcheck.base.records import dataclass
from mcheck.cat.algebra.tape import Tape, ancestors
from mcheck.engines.protocol.incremental.composition import find_chains, split_relation, split_scope
from mcheck.engines.protocol.incremental.entries import LARGE, Check
from mcheck.engines.protocol.incremental.generated_code import Known, Writer
from mcheck.engines.protocol.incremental.kinds import BOTH, FORWARD, NOTHING, SET, Shown, kinds_of

MIN_COUNT = 40
"""Events of one kind after which the kind gets a specialised function."""

Step = Callable[..., int]


class Turned(NamedTuple):
    """What is computed again after an edge that orders earlier events.

    ``nodes`` are computed for all events from the ``known`` ones, of which the axioms need those ``for_axioms``; the
    ``first`` axioms are checked before the others, as their nodes need no closure.
    """

    nodes: frozenset[int]
    known: frozenset[int]
    first: tuple[Check, ...]
    for_axioms: frozenset[int]


@dataclass(slots=True)
class Compiled:
    """A model compiled for incremental evaluation.

    ``stored`` are the nodes whose column ``c`` is kept for every event, ``masks`` the sets whose members are kept.
    ``deferred`` nodes are computed at the end only, because earlier events may still enter them.
    """

    tape: Tape
    wanted: tuple[int, ...]
    """Nodes that the functions write to their output if they hold of the event."""
    kinds: list[str]
    deferred: frozenset[int]
    gathered: tuple[int, ...]
    """The domains of which the members are kept."""
    needed: set[int]
    stored: tuple[int, ...] = ()
    masks: tuple[int, ...] = ()
    home: dict[int, int] = field(default_factory=dict)
    """For each stored node, the first node that is always equal to it: only that one is stored."""
    reordering: frozenset[int] = frozenset()
    """Nodes in which a new event may relate two earlier ones."""
    chained: dict[int, int] = field(default_factory=dict)
    """Nodes computed from the latest events only, each with the closure that says which these are."""
    plans: dict[tuple[frozenset[int], frozenset[int]], tuple[list[int], dict[int, list[int]]]] = field(
        default_factory=dict
    )
    """Evaluation orders, by wanted and known nodes (``mcheck.engines.protocol.incremental.full_evaluation``)."""
    turned: Turned | None = None
    """Set when the first edge orders earlier events."""
    own: frozenset[int] = frozenset()
    """Nodes of which only reflexive pairs of the new event are computed."""
    universal: set[int] = field(default_factory=set)
    """Sets that contain every event; nothing is stored for them."""
    unions: dict[tuple[int, int], int] = field(default_factory=dict)
    """Numbers of the unions that a window remembers (``generated_code.Writer``)."""
    steps: dict[Known | None, Step] = field(default_factory=dict)
    recheck_steps: dict[Known | None, Step] = field(default_factory=dict)
    counts: dict[Known, int] = field(default_factory=dict)

    def sources_of(self, nodes: Iterable[int]) -> set[int]:
        """Return some nodes with all that they are computed from, here and by the functions for new events."""
        found: set[int] = set()
        todo = set(nodes)
        while todo:
            found |= ancestors(self.tape, *todo)
            todo = {other[n] for other in (self.home, self.chained) for n in found if n in other} - found
        return found

    def step(self, known: Known) -> Step:
        """Return the function that computes a new event of a kind and stores what later events need of it."""
        return self._find_function(self.steps, known, enters=True)

    def recheck_step(self, known: Known) -> Step:
        """Return the function that computes an event again that is already stored."""
        return self._find_function(self.recheck_steps, known, enters=False)

    def _find_function(self, functions: dict[Known | None, Step], known: Known, *, enters: bool) -> Step:
        found = functions.get(known)
        if found is not None:
            return found
        seen = self.counts[known] = self.counts.get(known, 0) + 1
        return self.specialise(known if seen > MIN_COUNT else None, enters=enters)

    def specialise(self, known: Known | None, *, enters: bool) -> Step:
        """Return the function for a kind of events, ``None`` for any event, that enters them or computes them again."""
        functions = self.steps if enters else self.recheck_steps
        if known not in functions:
            writer = self.writer(known, noted=not enters)
            functions[known] = _function(self.source(writer, enters=enters))
        return functions[known]

    def writer(self, known: Known | None = None, *, noted: bool = False, kept: frozenset[int] = frozenset()) -> Writer:
        """Return a writer that has written all nodes for an event of a kind."""
        writer = Writer(
            self.tape, self.kinds, self.needed, known, noted, self.chained, self.home, kept,
            own=self.own, universal=self.universal, unions=self.unions,
        )  # fmt: skip
        writer.nodes()
        return writer

    def source(self, w: Writer, *, enters: bool) -> str:
        """Return the source text of a function."""
        tail: list[str] = []
        like: dict[str, list[int]] = {}
        """By operator, the nodes whose columns have been stored."""
        for n in self.stored if enters else ():
            col, row = w.col(n), w.row(n)
            if col != "0":
                others = like.setdefault(self.tape.code[n].op, [])
                operand = self.tape.code[n].a
                compared = [*others, *(k for ks in like.values() for k in ks if k == operand)]
                common = self.tape.code[n].op == "plus" and not w.follows_own_thread(n)
                tail += [f"x{n} = {col}", *_share(n, compared, common=common)]
                others.append(n)
            if row != "0":
                tail.append(f"if {row}: V.add_edges({n}, {row}, B)")
        for n in self.masks if enters else ():
            if w.member(n) != "False":
                tail.append(f"if {w.member(n)}: V.masks[{n}] |= B")
        for n in self.gathered if enters else ():
            col, row = w.col(self.tape.code[n].a), w.row(self.tape.code[n].a)
            if (col, row) != ("0", "0"):
                tail.append(f"V.domains[{n}] |= {col}" + (f" | (B if {row} else 0)" if row != "0" else ""))
        for n in self.wanted:
            col, row = w.col(n), w.row(n)
            if (col, row) != ("0", "0"):
                tail.append(f"if {col} or {row}: out[{n}] = ({col}, {row})")
        head = ["D = E.edges.get; R = E.back.get; S = E.sets; L = V.last_columns"]
        lines = [*head, *w.text(tail), "return dirty"]
        return "\n".join(["def step(V, E, e, B, t, out, dirty):", *(f"    {line}" for line in lines), ""])


def _share(n: int, others: Iterable[int], *, common: bool) -> list[str]:
    """Return lines that store the column of a node. Where it equals that of the event before, or of one of the
    ``others``, it takes no memory of its own: columns are most of what a window needs. What may be ``common`` is
    compared with the columns of other late events as well: many threads come after the same operations of a phase.
    """
    own = f"x{n}"
    found = f"V.one_of_equal({own}) if {own}.bit_length() > {LARGE} else {own}" if common else own
    equal = [f"    elif {own} == x{k}: L[{n}] = {own} = x{k}" for k in dict.fromkeys(others)]
    return [
        f"if {own}:",
        f"    if {own} == L[{n}]: {own} = L[{n}]",
        *equal,
        f"    else: L[{n}] = {own} = {found}" if found != own else f"    else: L[{n}] = {own}",
        f"    V.filled[{n}] |= B",
        f"A{n}[e] = {own}",
    ]


def _function(source: str) -> Step:
    scope: dict[str, object] = {}
    name = f"<views {hash(source) & 0xFFFFFF:06x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for those who look at a trace
    exec(compile(source, name, "exec"), scope)  # noqa: S102 - the text is ours, made from a checked model
    return scope["step"]  # type: ignore[return-value]


def compile_tape(tape: Tape, shown: Shown, wanted: tuple[int, ...], circles: frozenset[int]) -> Compiled:
    """Compile a tape for the tags and relations that an execution has shown.

    ``wanted`` are the nodes to leave in the output. Of ``circles``, a subset of them, only reflexive pairs of the new
    event matter.
    """
    kind = kinds_of(tape, shown)
    deferred = find_deferred_nodes(tape, kind)
    gathered = _find_gathered_domains(tape, kind, deferred, wanted)
    asked = [n for n in (*wanted, *(tape.code[d].a for d in gathered)) if n not in deferred]
    needed = ancestors(tape, *asked, but=[n for n, one in enumerate(kind) if one == NOTHING])
    reordering = _find_reordering(tape, kind)
    own = _find_reflexive_only(tape, kind, needed, circles)
    chained = find_chains(tape, kind, reordering, needed - own)
    stored, masks = _find_stored(tape, kind, needed - own, chained)
    compiled = Compiled(tape, tuple(n for n in wanted if n in needed), kind, frozenset(deferred), gathered, needed)
    compiled.reordering = frozenset(reordering & needed)
    compiled.chained = chained
    compiled.own = own
    writer = compiled.writer(kept=frozenset(stored | masks))
    compiled.stored = tuple(sorted(n for n in stored if compiled.home.get(n, n) == n))
    compiled.masks = tuple(sorted(n for n in masks if compiled.home.get(n, n) == n and n not in compiled.universal))
    compiled.steps[None] = _function(compiled.source(writer, enters=True))
    return compiled


def _find_reflexive_only(tape: Tape, kind: list[str], needed: set[int], circles: frozenset[int]) -> frozenset[int]:
    """Return the compositions ``a; b`` among ``circles`` that lead forward only and are used by no other node.

    They relate the new event to itself only if both steps are at the new event.
    """
    used = {x for n in needed for x in (tape.code[n].a, tape.code[n].b)}
    used |= {body for group in tape.groups for _, body, _ in group}
    return frozenset(n for n in circles & needed - used if tape.code[n].op == "seq" and kind[n] == FORWARD)


def _find_gathered_domains(tape: Tape, kind: list[str], deferred: set[int], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Return the domains that the checks at the end use: each is gathered while the execution grows."""
    found = ancestors(tape, *(n for n in wanted if n in deferred))
    domains = (k for k in found if tape.code[k].op == "dom" and tape.code[k].a not in deferred)
    return tuple(sorted(k for k in domains if kind[tape.code[k].a] not in (NOTHING, SET)))


def find_deferred_nodes(tape: Tape, kind: list[str]) -> set[int]:
    """Return the nodes that an earlier event may still enter when later ones come: domains, and what uses them."""
    deferred: set[int] = set()
    for _ in range(2 if tape.groups else 1):
        for n, i in enumerate(tape.code):
            args = [x for x in (i.a, i.b) if x >= 0]
            if (i.op == "dom" and kind[i.a] not in (NOTHING, SET)) or any(x in deferred for x in args):
                deferred.add(n)
    return deferred


def _find_reordering(tape: Tape, kind: list[str]) -> set[int]:
    """Return the nodes in which a new event may relate two earlier ones: a path leads through it, or an edge leads
    back.
    """
    reordering: set[int] = set()
    before = -1
    while len(reordering) > before:
        before = len(reordering)
        for n, i in enumerate(tape.code):
            a, b = (kind[x] if x >= 0 else NOTHING for x in (i.a, i.b))
            through = (i.op in ("plus", "star", "rng", "dom") and a == BOTH) or (
                i.op == "seq" and b == BOTH and a in (FORWARD, BOTH)
            )
            if through or i.a in reordering or i.b in reordering:
                reordering.add(n)
        reordering |= {v for group in tape.groups for v, body, _ in group if body in reordering}
    return reordering


def _find_stored(tape: Tape, kind: list[str], wanted: set[int], chained: dict[int, int]) -> tuple[set[int], set[int]]:
    """Return the nodes whose columns later events need, and the sets whose members they need."""
    stored: set[int] = set(chained)
    masks: set[int] = set()
    for n in wanted:
        i = tape.code[n]
        if i.op == "seq":
            a, b = kind[i.a], kind[i.b]
            if a == SET:
                masks.add(i.a)
            elif b == SET:
                if kind[n] == BOTH:
                    masks.add(i.b)
            else:
                parts = split_relation(tape, kind, i.a)
                masks.update(parts.sets)
                inside = {rest: split_scope(tape, kind, rest) for rest in parts.rest}
                stored.update(rest if within is None else within[0] for rest, within in inside.items())
                if a == BOTH:
                    stored.add(i.b)
        elif (i.op == "plus" and kind[i.a] not in (NOTHING, SET)) or (
            i.op == "star" and kind[i.a] not in (NOTHING, SET)
        ):
            stored.add(n)
        elif i.op == "prod":
            masks.update((i.a, i.b))
        elif i.op == "rng" and kind[i.a] == BOTH:
            masks.add(n)
    return {n for n in stored if n in wanted}, {n for n in masks if n in wanted}
