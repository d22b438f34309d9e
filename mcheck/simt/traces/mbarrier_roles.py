"""The roles of the mbarriers of an executed cluster, derived from the operations on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.effects.site import Objects, widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.ops import Op

FULL, EMPTY, OTHER = "full", "empty", "bar"
Bar = tuple[str, int]
"""A shared variable and an offset in it: the mbarrier there of every CTA."""


@dataclass(slots=True)
class Use:
    """The operations on an mbarrier: ``init``, ``bytes`` (copies complete on it), ``arrive``, ``wait``, ``feeds`` (a
    thread that has waited for it copies); ``spans`` are the places of all but the init.
    """

    words: set[str] = field(default_factory=set)
    spans: set[Span] = field(default_factory=set)

    @property
    def role(self) -> str:
        """``full`` if copies complete on it, ``empty`` if only threads arrive and a waiting thread then copies."""
        if "bytes" in self.words:
            return FULL
        return EMPTY if {"arrive", "feeds"} <= self.words else OTHER


def operand_values(expr: Expr | None) -> tuple[int, ...]:
    """The values of an operand of a trace, as addresses."""
    match expr:
        case Const(value):
            return (widened(value),)
        case Lanes(values):
            return tuple(widened(v) for v in values if v)
    return ()


def find_uses(objects: Objects, codes: Iterable[Sequence[Op]]) -> dict[Bar, Use]:
    """The mbarriers that some thread initialises, in the order of their places; ``codes`` are those of the threads."""
    found: dict[Bar, Use] = {}
    known: dict[int, tuple[str, tuple[Bar, ...]]] = {}
    for code in codes:
        waited: set[Bar] = set()
        for op in code:
            act = known.get(id(op))
            if act is None:
                act = known[id(op)] = _classify(objects, op)
                for bar in act[1]:
                    use = found.setdefault(bar, Use())
                    use.words.add(act[0])
                    if op.span is not None and act[0] != "init":
                        use.spans.add(op.span)
            word, bars = act
            if word == "wait":
                waited.update(bars)
            elif word == "bytes" and waited:
                for bar in waited:
                    found[bar].words.add("feeds")
                waited.clear()
    return {bar: found[bar] for bar in sorted(found) if "init" in found[bar].words}


def index_roles(roles: Mapping[Bar, str]) -> dict[Bar, tuple[str, int]]:
    """Arrays of mbarriers, one for each role: its name and the index, in the order of the places."""
    counts: dict[str, int] = {}
    found: dict[Bar, tuple[str, int]] = {}
    for bar, role in roles.items():
        found[bar] = role, counts.get(role, 0)
        counts[role] = found[bar][1] + 1
    return found


def find_rings(found: Mapping[Bar, Use]) -> list[list[Bar]]:
    """The mbarriers of each role that the same instructions operate on in turn, in the order of their places."""
    rings: list[tuple[set[Span], list[Bar]]] = []
    for bar, use in found.items():
        spans, bars = set(use.spans), [bar]
        apart = []
        for ring in rings:
            if found[ring[1][0]].role == use.role and ring[0] & spans:
                spans, bars = spans | ring[0], ring[1] + bars
            else:
                apart.append(ring)
        rings = [*apart, (spans, bars)]
    return [sorted(bars) for _, bars in rings]


def find_stages(found: Mapping[Bar, Use]) -> dict[Bar, tuple[int, int]]:
    """The stage, from 0, and the number of stages of each mbarrier of a ring whose mbarriers are at equal distances."""
    out: dict[Bar, tuple[int, int]] = {}
    for bars in find_rings(found):
        if len(bars) > 1 and len({(a[0], b[0], b[1] - a[1]) for a, b in pairwise(bars)}) == 1:
            out |= {bar: (k, len(bars)) for k, bar in enumerate(bars)}
    return out


def _classify(objects: Objects, op: Op) -> tuple[str, tuple[Bar, ...]]:
    """The kind of an operation on mbarriers, and the mbarriers."""
    word, expr = _operand(ops.performed_operation(op))
    there = [(objects.at(address), address) for address in operand_values(expr)]
    bars = [(i.object.name, at - i.base) for i, at in there if i is not None and i.object.space == "shared"]
    return word, tuple(dict.fromkeys(bars))


def _operand(op: Op) -> tuple[str, Expr | None]:
    match op:
        case ops.MbarrierInit():
            return "init", op.address
        case ops.MbarrierTx() | ops.CpAsyncArrive():
            return "bytes", op.address
        case ops.MbarrierArrive():
            return "arrive" if op.tx is None else "bytes", op.address
        case ops.TensorCommit():
            return "arrive", op.address
        case ops.MbarrierWait():
            return "wait", op.address
        case ops.BulkCopy() | ops.TensorCopy() | ops.AsyncStore():
            return "bytes", op.mbar
    return "", None
