"""The tape of a model as a Python function that computes the relations of one new event with all earlier ones.

Of every relation two sets are computed, each an integer whose bits are events: ``c`` those that it relates to the new
event (which may be among them), ``r`` the earlier ones that the new event is related to. Most relations only lead
forward, so that ``r`` is empty; that is found out here. A set is kept as whether the new event is in it.

What an execution has not shown so far (a tag, an edge of some base relation, an edge that leads backward) is taken for
empty; when it shows up the tape is compiled again (``mcheck.views.window``).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field

from mcheck.algebra.tape import Tape, ancestors
from mcheck.cat.ast import Kind
from mcheck.cat.names import BASE
from mcheck.errors import Unsupported

DYNAMIC = frozenset(
    [
        "po",
        "rf",
        "co",
        "rmw",
        "addr",
        "data",
        "ctrl",
        "sync_fence",
        "barrier",
        "exited",
        "rounds",
        "issue",
        "complete",
        "phase",
        "phase-order",
        "phase-fr",
        "meet",
    ]
)
"""Base relations whose edges are given with the new event."""

STATIC = frozenset(
    [
        "int",
        "loc",
        "vloc",
        "overlap",
        "complete-overlap",
        "si",
        "same-access",
        "sr",
        "scta",
        "scluster",
        "sgpu",
        "sblock",
        "object-access",
        "outlived",
        "own-outlived",
        "unborn",
        "mbarrier-object",
        "covers",
        "id",
        "ext",
    ]
)
"""Base relations that follow from what the two events are."""

ONE_WAY = frozenset(("object-access", "outlived", "own-outlived", "unborn", "covers"))
"""Those of ``STATIC`` that are not symmetric."""

SET, FORWARD, BOTH, NOTHING = "set", "forward", "both", "nothing"


@dataclass(frozen=True, slots=True)
class Shown:
    """What an execution has shown so far: tags, base relations with edges, those with edges that lead backward."""

    tags: frozenset[str] = frozenset()
    edges: frozenset[str] = frozenset()
    backward: frozenset[str] = frozenset()


Step = Callable[..., int]


@dataclass(slots=True)
class Compiled:
    """``step`` computes a new event. ``stored`` are the nodes whose ``c`` is kept of every event, ``masks`` the sets of
    which the members are kept, ``sets`` for each set that the tags decide how they do; ``late`` nodes are computed at
    the end only, because earlier events may still enter them.
    """

    step: Step
    source: str
    stored: tuple[int, ...]
    masks: tuple[int, ...]
    kinds: list[str]
    late: frozenset[int]
    gathered: tuple[int, ...]
    """The domains of which the members are kept."""
    checks: tuple[int, ...]
    """The nodes of checks whose value ``step`` leaves in its output."""
    plans: dict[bool, tuple[list[int], dict[int, list[int]]]] = field(default_factory=dict)
    """What is to be computed where everything is (``mcheck.views.whole``), with and without the late nodes."""


@dataclass(slots=True)
class _Writer:
    tape: Tape
    shown: Shown
    wanted: set[int]
    kind: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)
    masks: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    indent: str = "    "

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)


def is_set(name: str) -> bool:
    """Whether a base name is a set."""
    return name == "_" or (name in BASE and BASE[name].kind is Kind.SET)


def kinds_of(tape: Tape, shown: Shown) -> list[str]:
    """For each node: a set, a relation that leads forward only, one that leads both ways, or nothing at all."""
    kind = [NOTHING] * len(tape.code)
    for _ in range(3 if tape.groups else 1):  # recursive definitions: their variables grow from nothing
        before = list(kind)
        for n, i in enumerate(tape.code):
            kind[n] = _kind(tape, shown, kind, n) if i.op != "rec" else kind[n]
        for group in tape.groups:
            for v, body, what in group:
                if what == 0:
                    kind[v] = kind[body] if kind[body] != SET else FORWARD
        if kind == before:
            break
    return kind


def _kind(tape: Tape, shown: Shown, kind: list[str], n: int) -> str:
    i = tape.code[n]
    a = kind[i.a] if i.a >= 0 else NOTHING
    b = kind[i.b] if i.b >= 0 else NOTHING
    match i.op:
        case "base":
            return _base_kind(i.name, shown)
        case "empty":
            return NOTHING
        case "and":
            return NOTHING if NOTHING in (a, b) else SET if SET in (a, b) else FORWARD if FORWARD in (a, b) else BOTH
        case "or":
            return _either(a, b)
        case "sub":
            return a
        case "seq":
            if NOTHING in (a, b):
                return NOTHING
            return SET if (a, b) == (SET, SET) else FORWARD if {a, b} <= {SET, FORWARD} else BOTH
        case "prod":
            return NOTHING if NOTHING in (a, b) else BOTH
        case "inv":
            return BOTH if a == FORWARD else a
        case "plus":
            return a
        case "opt" | "star":
            return SET if a == NOTHING else FORWARD if a in (SET, FORWARD) else BOTH
        case "dom" | "rng":
            return NOTHING if a == NOTHING else SET
        case "compset":
            return SET
        case "comp":
            return BOTH
    raise Unsupported(f"the operator {i.op} of a model")


def _base_kind(name: str, shown: Shown) -> str:
    if is_set(name):
        return (
            SET
            if name == "_" or name == "STRONG" or name in ("CTA", "CLUSTER", "GPU", "SYS") or name in shown.tags
            else NOTHING
        )
    if name in DYNAMIC:
        return BOTH if name in shown.backward else FORWARD if name in shown.edges else NOTHING
    if name in STATIC:
        return SET if name in ("id", "same-access") else BOTH
    if name == "syncbar":
        return NOTHING  # static instances of the table dialect, which only the older models have
    raise Unsupported(f"the relation {name} of the model is not followed by the kernel engine")


def _either(a: str, b: str) -> str:
    if a == NOTHING:
        return b
    if b == NOTHING or a == b:
        return a
    return BOTH if BOTH in (a, b) else FORWARD


def compile_tape(tape: Tape, shown: Shown, wanted: tuple[int, ...]) -> Compiled:
    """The step function for what an execution has shown; ``wanted`` are the nodes to leave in the output."""
    w = _Writer(tape, shown, set())
    w.kind = kinds_of(tape, shown)
    w.late = _late(tape, w.kind)
    gathered = _gathered(tape, w, wanted)
    for n in (*wanted, *(tape.code[d].a for d in gathered)):
        if n not in w.late:
            w.wanted |= {k for k in ancestors(tape, n) if w.kind[k] != NOTHING}
    w.stored, w.masks = _kept(tape, w)
    for n in range(len(tape.code)):
        if n not in w.wanted:
            continue
        group = tape.group_of[n]
        if group >= 0:
            members = [k for k in range(len(tape.code)) if tape.group_of[k] == group and k in w.wanted]
            if n == members[-1]:  # what does not depend on the recursion stands between its nodes
                _group(w, group, members)
        else:
            _node(w, n)
    for n in sorted(w.stored):
        w.line(f"A{n}[e] = x = {_c(w, n)}")
        w.line(f"if x: V.filled[{n}] |= B")
        if w.kind[n] == BOTH:
            w.line(f"if r{n}: V.turn({n}, r{n}, B)")
    for n in sorted(w.masks):
        w.line(f"if s{n}: V.masks[{n}] |= B")
    for n in gathered:
        a = tape.code[n].a
        w.line(f"V.domains[{n}] |= ({_c(w, a)} & ~B) | (B if {_r(w, a)} or {_c(w, a)} & B else 0)")
    for n in wanted:
        if n in w.wanted:
            row = f"r{n}" if w.kind[n] == BOTH else "0"
            w.line(f"out[{n}] = ({_c(w, n)}, {row})")
    head = ["def step(V, E, e, B, t, out, dirty):"]
    head += [f"    A{n} = V.cols[{n}]" for n in sorted(w.stored)]
    head += [f"    F{n} = V.filled[{n}] & ~B" for n in sorted(w.stored)]
    head += [f"    M{n} = V.masks[{n}]" for n in sorted(w.masks)]
    head.append("    D = E.edges.get; R = E.back.get; S = E.sets; ALL = V.all | B")
    source = "\n".join([*head, *w.lines, "    return dirty", ""])
    scope: dict[str, object] = {}
    name = f"<views {hash(source) & 0xFFFFFF:06x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for those who look at a trace
    exec(compile(source, name, "exec"), scope)  # noqa: S102 - the text is ours, made from a checked model
    step = scope["step"]
    return Compiled(
        step, source, tuple(sorted(w.stored)), tuple(sorted(w.masks)), w.kind, frozenset(w.late), gathered,  # type: ignore[arg-type]
        tuple(n for n in wanted if n in w.wanted),
    )  # fmt: skip


def _gathered(tape: Tape, w: _Writer, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The domains that checks at the end ask for: each is gathered while the execution grows."""
    found: set[int] = set()
    for n in wanted:
        if n in w.late:
            found |= {k for k in ancestors(tape, n) if tape.code[k].op == "dom" and tape.code[k].a not in w.late}
    return tuple(sorted(k for k in found if w.kind[tape.code[k].a] not in (NOTHING, SET)))


def _late(tape: Tape, kind: list[str]) -> set[int]:
    """Nodes of which an earlier event may still become part when later ones come: domains, and what uses them."""
    late: set[int] = set()
    for _ in range(2 if tape.groups else 1):
        for n, i in enumerate(tape.code):
            args = [x for x in (i.a, i.b) if x >= 0]
            if (i.op == "dom" and kind[i.a] not in (NOTHING, SET)) or any(x in late for x in args):
                late.add(n)
    return late


def _kept(tape: Tape, w: _Writer) -> tuple[set[int], set[int]]:
    """The nodes whose ``c`` later events need, and the sets whose members they do."""
    stored: set[int] = set()
    masks: set[int] = set()
    for n in w.wanted:
        i = tape.code[n]
        if i.op == "seq":
            a, b = w.kind[i.a], w.kind[i.b]
            if a == SET:
                masks.add(i.a)
            elif b == SET:
                if w.kind[n] == BOTH:
                    masks.add(i.b)
            else:
                stored.add(i.a)
                if a == BOTH:
                    stored.add(i.b)
        elif (i.op == "plus" and w.kind[i.a] not in (NOTHING, SET)) or (
            i.op == "star" and w.kind[i.a] not in (NOTHING, SET)
        ):
            stored.add(n)
        elif i.op == "prod":
            masks.update((i.a, i.b))
        elif i.op == "rng" and w.kind[i.a] == BOTH:
            masks.add(n)
    return {n for n in stored if n in w.wanted}, {n for n in masks if n in w.wanted}


def _c(w: _Writer, n: int) -> str:
    """The expression for the ``c`` of a node."""
    return "0" if w.kind[n] == NOTHING or n not in w.wanted else f"(B if s{n} else 0)" if w.kind[n] == SET else f"c{n}"


def _r(w: _Writer, n: int) -> str:
    return f"r{n}" if n in w.wanted and w.kind[n] == BOTH else "0"


def _s(w: _Writer, n: int) -> str:
    return "False" if w.kind[n] == NOTHING or n not in w.wanted else f"s{n}"


def _group(w: _Writer, group: int, members: list[int]) -> None:
    """Recursive definitions: from nothing until nothing changes."""
    variables = [(v, b) for v, b, what in w.tape.groups[group] if what == 0 and v in w.wanted]
    variables = [(v, b) for v, b in variables if w.kind[v] != NOTHING]
    if not variables:
        for n in members:
            if w.tape.code[n].op != "rec":
                _node(w, n)
        return
    for v, _ in variables:
        w.line(f"c{v} = 0; r{v} = 0")
    w.line("while True:")
    w.indent += "    "
    for n in members:
        if w.tape.code[n].op != "rec":
            _node(w, n)
    new = ", ".join(f"{_c(w, b)}, {_r(w, b)}" for _, b in variables)
    old = ", ".join(f"c{v}, r{v}" for v, _ in variables)
    w.line(f"if ({new},) == ({old},): break")
    w.line(f"{old} = {new}")
    w.indent = w.indent[:-4]


def _node(w: _Writer, n: int) -> None:
    i = w.tape.code[n]
    kind = w.kind[n]
    if kind == SET:
        _set(w, n)
        return
    a, b = i.a, i.b
    both = kind == BOTH
    match i.op:
        case "base":
            _base(w, n, i.name, both)
        case "or":
            w.line(f"c{n} = {_c(w, a)} | {_c(w, b)}")
            if both:
                w.line(f"r{n} = {_r(w, a)} | {_r(w, b)}")
        case "and":
            w.line(f"c{n} = {_c(w, a)} & {_c(w, b)}")
            if both:
                w.line(f"r{n} = {_r(w, a)} & {_r(w, b)}")
        case "sub":
            w.line(f"c{n} = {_c(w, a)} & ~{_c(w, b)}")
            if both:
                w.line(f"r{n} = {_r(w, a)} & ~{_r(w, b)}")
        case "inv":
            w.line(f"c{n} = {_r(w, a)} | ({_c(w, a)} & B); r{n} = {_c(w, a)} & ~B")
        case "prod":
            w.line(f"c{n} = ((M{a} | B) if {_s(w, a)} else M{a}) if {_s(w, b)} else 0")
            w.line(f"r{n} = M{b} if {_s(w, a)} else 0")
        case "comp":
            w.line(f"c{n} = ALL & ~{_c(w, a)}; r{n} = V.all & ~{_r(w, a)}")
        case "seq":
            _seq(w, n, a, b, both)
        case "plus" | "star" | "opt":
            own = " | B" if i.op != "plus" else ""
            if i.op == "opt" or w.kind[a] == SET:
                w.line(f"c{n} = {_c(w, a)}{own}")
                if both:
                    w.line(f"r{n} = {_r(w, a)}")
                return
            w.line(f"x = {_c(w, a)} & F{n}")
            w.line(f"c{n} = {_c(w, a)} | (V.over({n}, x, A{n}, t) if x else 0){own}")
            if both:
                w.line(f"r{n} = {_r(w, a)}")
                w.line(f"if r{n}: dirty = 1")
        case _:
            raise Unsupported(f"the operator {i.op} of a model")


def _base(w: _Writer, n: int, name: str, both: bool) -> None:
    if name in DYNAMIC:
        w.line(f"c{n} = D({name!r}, 0)")
        if both:
            w.line(f"r{n} = R({name!r}, 0)")
        return
    w.line(f"c{n}, r{n} = V.static({name!r}, E, B)")


def _seq(w: _Writer, n: int, a: int, b: int, both: bool) -> None:
    if w.kind[a] == SET:
        w.line(f"c{n} = {_c(w, b)} & ((M{a} | B) if {_s(w, a)} else M{a})")
        if both:
            w.line(f"r{n} = {_r(w, b)} if {_s(w, a)} else 0")
        return
    if w.kind[b] == SET:
        w.line(f"c{n} = {_c(w, a)} if {_s(w, b)} else 0")
        if both:
            w.line(f"r{n} = {_r(w, a)} & M{b}")
        return
    helper = "over" if w.kind[a] == FORWARD else "union"
    w.line(f"x = {_c(w, b)}")
    w.line(f"y = x & F{a}")
    w.line(f"c{n} = (V.{helper}({n}, y, A{a}, t) if y else 0) | ({_c(w, a)} if x & B else 0)")
    if w.kind[a] == BOTH:
        w.line(f"if {_r(w, a)} & x: c{n} |= B")
    if w.kind[b] == BOTH:
        w.line(f"if {_r(w, b)} and {_c(w, a)} & ~B: dirty = 1")
    if both:
        left = f"V.rows({_r(w, a)}, V.cols[{b}])" if w.kind[a] == BOTH else "0"
        w.line(f"r{n} = ({left} | ({_r(w, b)} if {_c(w, a)} & B else 0)) & ~B")


def _set(w: _Writer, n: int) -> None:
    i = w.tape.code[n]
    a, b = i.a, i.b
    match i.op:
        case "base":
            w.line(f"s{n} = True" if i.name in ("_", "id", "same-access") else f"s{n} = {i.name!r} in S")
        case "or":
            w.line(f"s{n} = {_s(w, a)} or {_s(w, b)}")
        case "and":
            parts = [_s(w, x) if w.kind[x] == SET else f"bool({_c(w, x)} & B)" for x in (a, b)]
            w.line(f"s{n} = {parts[0]} and {parts[1]}")
        case "seq":
            w.line(f"s{n} = {_s(w, a)} and {_s(w, b)}")
        case "sub":
            right = _s(w, b) if w.kind[b] in (SET, NOTHING) else f"bool({_c(w, b)} & B)"
            w.line(f"s{n} = {_s(w, a)} and not {right}")
        case "inv" | "plus":
            w.line(f"s{n} = {_s(w, a)}")
        case "opt" | "star":
            w.line(f"s{n} = True")
        case "dom" | "rng":
            w.line(f"s{n} = {_s(w, a)}" if w.kind[a] == SET else f"s{n} = bool({_c(w, a)})")
            if i.op == "rng" and w.kind[a] == BOTH:  # that earlier events enter the range is not followed
                w.line(f"if {_r(w, a)} & ~V.masks[{n}]: V.missed = True")
        case "compset":
            w.line(f"s{n} = not {_s(w, a)}")
        case _:
            raise Unsupported(f"the operator {i.op} of a model")
