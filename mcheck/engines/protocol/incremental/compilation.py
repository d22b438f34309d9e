"""The tape of a model as a Python function that computes the relations of one new event with all earlier ones.

What it computes of a node is in ``mcheck.engines.protocol.incremental.generated_code``. Beside the function for any
event there is one for every kind of event that comes often: most of a model has nothing to say of most kinds.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.cat.algebra.tape import Tape, ancestors
from mcheck.engines.protocol.incremental.composition import chains, parts_of
from mcheck.engines.protocol.incremental.generated_code import Known, Writer
from mcheck.engines.protocol.incremental.kinds import BOTH, FORWARD, NOTHING, SET, Shown, kinds_of

OFTEN = 40
"""So many events of a kind, and it gets a function of its own."""

Step = Callable[..., int]


@dataclass(slots=True)
class Compiled:
    """``stored`` are the nodes whose ``c`` is kept of every event, ``masks`` the sets of which the members are kept;
    ``late`` nodes are computed at the end only, because earlier events may still enter them.
    """

    tape: Tape
    wanted: tuple[int, ...]
    """The nodes that the functions leave in their output where they hold of the event at all."""
    kinds: list[str]
    late: frozenset[int]
    gathered: tuple[int, ...]
    """The domains of which the members are kept."""
    needed: set[int]
    stored: tuple[int, ...] = ()
    masks: tuple[int, ...] = ()
    home: dict[int, int] = field(default_factory=dict)
    """For each node that is kept, the first one that is equal whatever comes: of all of them that one is kept."""
    turned: frozenset[int] = frozenset()
    """The nodes in which a new event may relate two earlier ones."""
    chained: dict[int, int] = field(default_factory=dict)
    """The nodes that are computed from the latest events only, each with the closure that says which these are."""
    plans: dict[tuple[frozenset[int], frozenset[int]], tuple[list[int], dict[int, list[int]]]] = field(
        default_factory=dict
    )
    """What is to be computed where some nodes are wanted, and others known
    (``mcheck.engines.protocol.incremental.full_evaluation``).
    """
    own: frozenset[int] = frozenset()
    """The nodes of which only is found out whether they lead from the new event to itself."""
    universal: set[int] = field(default_factory=set)
    """The sets that every event is in, of which nothing is kept."""
    unions: dict[tuple[int, int], int] = field(default_factory=dict)
    """The numbers of the unions that a window remembers (``text.Writer``)."""
    steps: dict[Known | None, Step] = field(default_factory=dict)
    looks: dict[Known | None, Step] = field(default_factory=dict)
    seen: dict[Known, int] = field(default_factory=dict)

    def step(self, known: Known) -> Step:
        """The function that computes an event of a kind, and notes what later events need of it."""
        return self._of(self.steps, known, enters=True)

    def look(self, known: Known) -> Step:
        """The function that computes again an event that has been noted."""
        return self._of(self.looks, known, enters=False)

    def _of(self, functions: dict[Known | None, Step], known: Known, *, enters: bool) -> Step:
        found = functions.get(known)
        if found is not None:
            return found
        seen = self.seen[known] = self.seen.get(known, 0) + 1
        kind = known if seen > OFTEN else None
        if kind is not None or None not in functions:
            writer = self.writer(kind, noted=not enters)
            functions[kind] = _function(self.source(writer, enters=enters))
        return functions[kind]

    def writer(self, known: Known | None = None, *, noted: bool = False, kept: frozenset[int] = frozenset()) -> Writer:
        """All nodes written for an event of a kind."""
        writer = Writer(
            self.tape, self.kinds, self.needed, known, noted, self.chained, self.home, kept,
            own=self.own, universal=self.universal, unions=self.unions,
        )  # fmt: skip
        writer.nodes()
        return writer

    def source(self, w: Writer, *, enters: bool) -> str:
        """The text of a function."""
        tail: list[str] = []
        for n in self.stored if enters else ():
            col, row = w.col(n), w.row(n)
            if col != "0":
                tail.append(f"A{n}[e] = x = {col}")
                tail.append(f"if x: V.filled[{n}] |= B")
            if row != "0":
                tail.append(f"if {row}: V.turn({n}, {row}, B)")
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
        head = ["D = E.edges.get; R = E.back.get; S = E.sets"]
        lines = [*head, *w.text(tail), "return dirty"]
        return "\n".join(["def step(V, E, e, B, t, out, dirty):", *(f"    {line}" for line in lines), ""])


def _function(source: str) -> Step:
    scope: dict[str, object] = {}
    name = f"<views {hash(source) & 0xFFFFFF:06x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for those who look at a trace
    exec(compile(source, name, "exec"), scope)  # noqa: S102 - the text is ours, made from a checked model
    return scope["step"]  # type: ignore[return-value]


def compile_tape(tape: Tape, shown: Shown, wanted: tuple[int, ...], circles: frozenset[int]) -> Compiled:
    """The functions for what an execution has shown; ``wanted`` are the nodes to leave in the output. Of ``circles``,
    some of them, nothing is asked but whether they lead from the new event to itself.
    """
    kind = kinds_of(tape, shown)
    late = late_nodes(tape, kind)
    gathered = _gathered(tape, kind, late, wanted)
    asked = [n for n in (*wanted, *(tape.code[d].a for d in gathered)) if n not in late]
    needed = {n for n in ancestors(tape, *asked) if kind[n] != NOTHING}
    turned = _turned(tape, kind)
    own = _own_alone(tape, kind, needed, circles)
    chained = chains(tape, kind, turned, needed - own)
    stored, masks = _kept(tape, kind, needed - own, chained)
    compiled = Compiled(tape, tuple(n for n in wanted if n in needed), kind, frozenset(late), gathered, needed)
    compiled.turned = frozenset(turned & needed)
    compiled.chained = chained
    compiled.own = own
    writer = compiled.writer(kept=frozenset(stored | masks))
    compiled.stored = tuple(sorted(n for n in stored if compiled.home.get(n, n) == n))
    compiled.masks = tuple(sorted(n for n in masks if compiled.home.get(n, n) == n and n not in compiled.universal))
    compiled.steps[None] = _function(compiled.source(writer, enters=True))
    return compiled


def _own_alone(tape: Tape, kind: list[str], needed: set[int], circles: frozenset[int]) -> frozenset[int]:
    """The ways ``a; b`` among the circles that lead forward only, which take two steps at the new event or none there;
    and that nothing else is made of.
    """
    used = {x for n in needed for x in (tape.code[n].a, tape.code[n].b)}
    used |= {body for group in tape.groups for _, body, _ in group}
    return frozenset(n for n in circles & needed - used if tape.code[n].op == "seq" and kind[n] == FORWARD)


def _gathered(tape: Tape, kind: list[str], late: set[int], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The domains that checks at the end ask for: each is gathered while the execution grows."""
    found = ancestors(tape, *(n for n in wanted if n in late))
    domains = (k for k in found if tape.code[k].op == "dom" and tape.code[k].a not in late)
    return tuple(sorted(k for k in domains if kind[tape.code[k].a] not in (NOTHING, SET)))


def late_nodes(tape: Tape, kind: list[str]) -> set[int]:
    """Nodes of which an earlier event may still become part when later ones come: domains, and what uses them."""
    late: set[int] = set()
    for _ in range(2 if tape.groups else 1):
        for n, i in enumerate(tape.code):
            args = [x for x in (i.a, i.b) if x >= 0]
            if (i.op == "dom" and kind[i.a] not in (NOTHING, SET)) or any(x in late for x in args):
                late.add(n)
    return late


def _turned(tape: Tape, kind: list[str]) -> set[int]:
    """The nodes in which a new event may relate two earlier ones: a way leads through it, or it leads back."""
    turned: set[int] = set()
    before = -1
    while len(turned) > before:
        before = len(turned)
        for n, i in enumerate(tape.code):
            a, b = (kind[x] if x >= 0 else NOTHING for x in (i.a, i.b))
            through = (i.op in ("plus", "star", "rng", "dom") and a == BOTH) or (
                i.op == "seq" and b == BOTH and a in (FORWARD, BOTH)
            )
            if through or i.a in turned or i.b in turned:
                turned.add(n)
        turned |= {v for group in tape.groups for v, body, _ in group if body in turned}
    return turned


def _kept(tape: Tape, kind: list[str], wanted: set[int], chained: dict[int, int]) -> tuple[set[int], set[int]]:
    """The nodes whose ``c`` later events need, and the sets whose members they do."""
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
                parts = parts_of(tape, kind, i.a)
                masks.update(parts.sets)
                stored.add(parts.rest)
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
