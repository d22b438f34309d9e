"""Relations on n events as rows of bits: row i of a relation is an integer with bit j set when (i, j) is in it."""

from __future__ import annotations

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
