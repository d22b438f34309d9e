"""Base relations of a growing execution, and the kind of each node of a tape: set, forward, both ways, or empty.

What an execution has not shown so far (a tag, an edge of some base relation, an edge that leads backward) is assumed to
be empty; when it occurs the tape is compiled again (``mcheck.engines.protocol.incremental.window``).
"""

from __future__ import annotations

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.ast import Kind
from mcheck.cat.names import BASE

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
        "regardless",
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
"""Base relations that follow from the two events alone."""

ONE_WAY = frozenset(("object-access", "outlived", "own-outlived", "unborn", "covers"))
"""Relations of ``STATIC`` that are not symmetric."""

SET, FORWARD, BOTH, NOTHING = "set", "forward", "both", "nothing"


@dataclass(frozen=True, slots=True)
class Shown:
    """What an execution has shown so far: tags, base relations with edges, those with edges that lead backward."""

    tags: frozenset[str] = frozenset()
    edges: frozenset[str] = frozenset()
    backward: frozenset[str] = frozenset()

    def joined(self, other: Shown) -> Shown:
        """What either has shown."""
        return Shown(self.tags | other.tags, self.edges | other.edges, self.backward | other.backward)


def is_set(name: str) -> bool:
    """Return whether a base name is a set."""
    return name == "_" or (name in BASE and BASE[name].kind is Kind.SET)


def kinds_of(tape: Tape, shown: Shown) -> list[str]:
    """Return the kind of each node: a set, a relation that leads forward only, one that leads both ways, or empty."""
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
    raise Unsupported(f"the relation {name} of the model is not followed by the protocol engine")


def _either(a: str, b: str) -> str:
    if a == NOTHING:
        return b
    if b == NOTHING or a == b:
        return a
    return BOTH if BOTH in (a, b) else FORWARD
