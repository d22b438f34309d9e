"""Relations on n events as rows of bits: row i of a relation is an integer with bit j set when (i, j) is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

Rows = list[int]


def empty(n: int) -> Rows:
    return [0] * n


def identity(n: int) -> Rows:
    return [1 << i for i in range(n)]


def union(a: Rows, b: Rows) -> Rows:
    return [x | y for x, y in zip(a, b, strict=True)]


def meet(a: Rows, b: Rows) -> Rows:
    return [x & y for x, y in zip(a, b, strict=True)]


def minus(a: Rows, b: Rows) -> Rows:
    return [x & ~y for x, y in zip(a, b, strict=True)]


def compose(a: Rows, b: Rows) -> Rows:
    out = []
    for row in a:
        acc = 0
        while row:
            low = row & -row
            acc |= b[low.bit_length() - 1]
            row ^= low
        out.append(acc)
    return out


def inverse(a: Rows) -> Rows:
    """The inverse of a relation, pair by pair."""
    out = [0] * len(a)
    for i, row in enumerate(a):
        bit = 1 << i
        while row:
            low = row & -row
            out[low.bit_length() - 1] |= bit
            row ^= low
    return out


def closure(a: Rows) -> Rows:
    """The transitive closure."""
    out = list(a)
    for k in range(len(out)):
        row = out[k]
        if row:
            bit = 1 << k
            for i, r in enumerate(out):
                if r & bit:
                    out[i] = r | row
    return out


def complement(a: Rows) -> Rows:
    full = (1 << len(a)) - 1
    return [full & ~row for row in a]


def product(a: Rows, b: Rows) -> Rows:
    """Sets given on the diagonal."""
    right = 0
    for row in b:
        right |= row
    return [right if row else 0 for row in a]


def domain(a: Rows) -> Rows:
    return [(1 << i) if row else 0 for i, row in enumerate(a)]


def codomain(a: Rows) -> Rows:
    acc = 0
    for row in a:
        acc |= row
    return [acc & (1 << i) for i in range(len(a))]


def diagonal(a: Rows) -> Rows:
    return [row & (1 << i) for i, row in enumerate(a)]


def bits(row: int) -> list[int]:
    out = []
    while row:
        low = row & -row
        out.append(low.bit_length() - 1)
        row ^= low
    return out


def apply_operation(op: str, x: Rows, y: Rows, zero: Rows) -> Rows:
    """An operation of the tape. ``zero`` is the empty relation: one object, so that work on it can be left out."""
    if x is zero:
        if op in EMPTY_FROM_EMPTY:
            return zero
        if op == "or":
            return y
    elif y is zero:
        if op in ("or", "sub"):
            return x
        if op in EMPTY_FROM_EITHER:
            return zero
    rows = _OPERATIONS[op](x, y)
    return rows if any(rows) else zero


EMPTY_FROM_EMPTY = frozenset({"and", "sub", "seq", "prod", "inv", "plus", "dom", "rng", "empty"})
"""Operations whose result is empty if the first operand is."""
EMPTY_FROM_EITHER = frozenset({"and", "seq", "prod"})
"""Those whose result is empty if the second operand is, too."""


_OPERATIONS: dict[str, Callable[[Rows, Rows], Rows]] = {
    "or": union,
    "and": meet,
    "seq": compose,
    "sub": minus,
    "inv": lambda x, _: inverse(x),
    "plus": lambda x, _: closure(x),
    "opt": lambda x, _: union(x, identity(len(x))),
    "star": lambda x, _: union(closure(x), identity(len(x))),
    "prod": product,
    "dom": lambda x, _: domain(x),
    "rng": lambda x, _: codomain(x),
    "comp": lambda x, _: complement(x),
    "compset": lambda x, _: diagonal(complement(x)),
}


def network(rows: Rows) -> nx.DiGraph:
    """The relation as a graph of networkx; every event is a node."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(rows)))
    graph.add_edges_from((i, j) for i, row in enumerate(rows) for j in bits(row))
    return graph
