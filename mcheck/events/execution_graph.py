"""Execution graphs as diagrams: boxes in columns, edges, bands. Plain data, the same for every picture and format."""

from __future__ import annotations

from mcheck.base.records import dataclass

DRAWN = {
    "po": "program order",
    "rf": "reads from",
    "co": "coherence: an order of writes",
    "fr": "from-reads: a read and a later write",
    "issue": "issue of an asynchronous operation to its accesses",
    "complete": "accesses of an asynchronous operation to what observes their completion",
    "phase": "operations on an mbarrier to the waits that saw their phase complete",
    "barrier": "arrival at a barrier to the departures",
    "sync_fence": "order of fence.sc",
    "observed": "seen by a read, a barrier or a wait, perhaps through others",
    "race": "conflicting accesses without the order that they need",
}
"""The edges that are drawn by default, with what they mean; others appear only where an axiom fails by them."""

LABELS = {"sync_fence": "sc", "phase-order": "phase order", "phase-fr": "phase fr", "same-access": "same access"}
LABELS |= {"prod": "product", "comp": "complement"}


def label_of(kind: str) -> str:
    """The label of an edge, in pictures and in text."""
    return LABELS.get(kind, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One or several events drawn as one: those of an instruction, or the reads, writes or signal of a copy.

    ``kind`` is one of read, write, update, fence, proxy-fence, barrier, mbarrier, issue, wait, signal, init, exit,
    stop, omitted. ``lines`` say what it does with values, ``text`` is the instruction, ``column`` an index into the
    columns. ``row`` is its place in time where that is known.
    """

    name: str
    kind: str
    column: int
    lines: tuple[str, ...]
    text: str
    proxy: str = "generic"
    asynchronous: bool = False
    marked: bool = False
    line: int = 0
    row: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge between two boxes, by index; ``violated``: the axiom fails by it. ``both``: it leads both ways."""

    source: int
    target: int
    kind: str
    violated: bool = False
    both: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """A step from a box to another, by index, along an edge of the picture; ``back``: against its direction.

    ``effects`` are those of the two events, of which a box may have others besides.
    """

    source: int
    target: int
    kind: str
    back: bool = False
    effects: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Column:
    """A thread, or asynchronous operations of the thread before it."""

    title: str
    place: str
    thread: int
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A phase of an mbarrier: the boxes that count in it."""

    barrier: str
    phase: int
    boxes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """``axiom`` is the one that forbids it and ``walk`` the edges that show it, a cycle if the axiom is about one;
    ``state`` are the final values it leads to.
    """

    name: str
    model: str
    state: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    bands: tuple[Band, ...] = ()
    axiom: str | None = None
    walk: tuple[Hop, ...] = ()
    subject: str = ""
    """What is drawn, if it is neither an execution nor a schedule."""

    @property
    def cycle(self) -> tuple[str, ...]:
        """The edges of the walk as text, one by one."""
        out = []
        for hop in self.walk:
            inverse = "^-1" if hop.back else ""
            ends = self.boxes[hop.source].name, self.boxes[hop.target].name
            out.append(f"{ends[0]} \N{RIGHTWARDS ARROW} {ends[1]} by {label_of(hop.kind)}{inverse}")
        return tuple(out)

    def explanation(self, *, boxes: bool = True) -> str:
        """The walk as one line: ``b: P1 U x 0→1 -fr→ a: P0 U x 0→1 -co→ b``.

        Without ``boxes`` only their names, for beside the picture.
        """
        effects: dict[int, dict[str, None]] = {}
        for hop in self.walk:
            for box, effect in zip((hop.source, hop.target), hop.effects, strict=True):
                effects.setdefault(box, {})[effect or self.boxes[box].lines[0]] = None

        def name(box: int) -> str:
            """Where the box is met for the first time, with what it does."""
            found, own = effects.pop(box, {}) if boxes else {}, self.boxes[box]
            what = " and ".join(map(_brief, found))
            return f"{own.name}: {self.columns[own.column].title} {what}" if what else own.name

        out, at = "", -1
        for hop in self.walk:
            kind = label_of(hop.kind)
            if hop.source != at:
                out += f"{', ' if out else ''}{name(hop.source)}"
            arrow = f"\N{LEFTWARDS ARROW}{kind}-" if hop.back else f"-{kind}\N{RIGHTWARDS ARROW}"
            out += f" {arrow} {name(hop.target)}"
            at = hop.target
        return out

    @property
    def title(self) -> str:
        """The title: the test, the model, the final values, the verdict."""
        values = " ".join(f"{label}={value};" for label, value in self.state)
        if self.subject:
            return f"{self.name} under {self.model}: {self.subject}"
        if self.boxes and self.boxes[0].row >= 0:
            return f"{self.name} under {self.model}: a schedule"
        verdict = f"forbidden by {self.axiom}" if self.axiom else "allowed"
        return f"{self.name} under {self.model}: {values or 'an execution'} ({verdict})"

    def describe(self) -> tuple[str, ...]:
        """The diagram as text, for accessibility: every box, then every edge except program order."""
        lines = []
        for box in self.boxes:
            column = self.columns[box.column]
            who = f"{column.title}, asynchronously" if box.asynchronous else column.title
            lines.append(f"{box.name}, {who}: {'; '.join(box.lines)}")
        for edge in self.edges:
            if edge.kind != "po" or edge.violated:
                arrow = "and" if edge.both else "to"
                mark = " (violates the axiom)" if edge.violated else ""
                source, target = self.boxes[edge.source].name, self.boxes[edge.target].name
                lines.append(f"{label_of(edge.kind)}: {source} {arrow} {target}{mark}")
        return tuple(lines)


def _brief(effect: str) -> str:
    """The short text of an event's effect, as in ``U x 0→1``."""
    if not effect.startswith("U "):
        return effect
    return effect.replace(": ", " ", 1).replace(" \N{RIGHTWARDS ARROW} ", "\N{RIGHTWARDS ARROW}")
