"""Evaluation of the relations of a model over all events of a window, node by node."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cache

from mcheck.cat.algebra.bits import inverse
from mcheck.engines.protocol.incremental.kinds import DYNAMIC, NOTHING, SET, is_set
from mcheck.engines.protocol.incremental.state import State

Columns = list[int]
MAX_RECENT_SETS = 8
"""Number of recent sets among which a subset of the next one is searched."""
MAX_TRANSPOSED = 2048
"""The slots up to which the inverse of a relation is computed as a whole, by integers of so many bits squared."""


def evaluate(
    w: State, wanted: frozenset[int], known: frozenset[int] = frozenset(), given: Mapping[int, Columns] | None = None
) -> dict[int, Columns]:  # fmt: skip
    """Evaluate some nodes and all nodes that they need: by slot, the events related to the one in the slot.

    The ``known`` nodes are those that the window stores; their columns are used as they are, also where they are part
    of a recursive definition. ``given`` are the values of an evaluation of other nodes of the same window, with the
    same ``known``.
    """
    tape = w.tape
    needed, groups = _plan(w, wanted, known)
    values: dict[int, Columns] = _Values([0] * len(w.entries))
    values.update(given or {})
    come = ((e.time, k) for k, e in enumerate(w.entries) if e is not None and w.all >> k & 1)
    live = [k for _, k in sorted(come)]
    for n in needed:
        home = w.compiled.home.get(n, n)
        if home in known:
            values[n] = w.cols[home] if home in w.cols else _members(w.masks[home], len(w.entries))
    for n in needed:
        if n in values:
            continue
        group = tape.group_of[n]
        home = w.compiled.home.get(n, n)
        if home != n:
            values[n] = values[home]
            continue
        if group < 0:
            values[n] = _node(w, n, values, live)
            if w.has_merged and n in w.cols:  # what has been forgotten had its part in what is known
                values[n] = [a | b for a, b in zip(values[n], w.cols[n], strict=True)]
            continue
        members = groups[group]
        if n != members[-1]:
            continue  # what does not depend on the recursion stands between its nodes
        variables = [(v, b) for v, b, what in tape.groups[group] if what == 0 and v in members]  # the others are known
        for v, _ in variables:
            values[v] = [0] * len(w.entries)
        while True:
            for k in members:
                if tape.code[k].op != "rec":
                    values[k] = _node(w, k, values, live)
            if all(values[v] == values[b] for v, b in variables):
                break
            for v, b in variables:
                values[v] = values[b]
        for k in members:
            if w.has_merged and k in w.cols:  # what has been forgotten had its part in what is known
                values[k] = [a | b for a, b in zip(values[k], w.cols[k], strict=True)]
    return values


def _members(mask: int, size: int) -> Columns:
    """Return a set as a relation, a subset of the identity."""
    out = [0] * size
    while mask:
        low = mask & -mask
        out[low.bit_length() - 1] = low
        mask ^= low
    return out


class _Values(dict[int, Columns]):
    """Columns of nodes; those of an empty node are shared."""

    def __init__(self, empty: Columns) -> None:
        super().__init__()
        self.empty = empty

    def __missing__(self, _n: int) -> Columns:
        return self.empty


def needs_closure(w: State, node: int, known: frozenset[int]) -> bool:
    """Whether the evaluation of a node goes through a transitive closure or a recursive definition."""
    needed, groups = _plan(w, frozenset((node,)), known)
    code = w.tape.code
    return any(group >= 0 for group in groups) or any(code[n].op in ("plus", "star") for n in needed)


def _plan(w: State, wanted: frozenset[int], known: frozenset[int]) -> tuple[list[int], dict[int, list[int]]]:
    """Return the nodes to compute, in order, and those of each recursive definition; computed once per compilation."""
    found = w.compiled.plans.get((wanted, known))
    if found is not None:
        return found
    needed: set[int] = set()
    todo = list(wanted)
    while todo:
        n = todo.pop()
        if n in needed or w.compiled.kinds[n] == NOTHING:
            continue
        needed.add(n)
        i = w.tape.code[n]
        home = w.compiled.home.get(n, n)
        if home in known:
            continue
        if home != n:
            todo.append(home)
            continue
        if i.op == "rec":
            todo += [b for _, b, what in w.tape.groups[w.tape.group_of[n]] if what == 0]
        todo += [x for x in (i.a, i.b) if x >= 0]
    groups: dict[int, list[int]] = {}
    for n in sorted(needed):
        if w.compiled.home.get(n, n) not in known:
            groups.setdefault(w.tape.group_of[n], []).append(n)
    found = w.compiled.plans[wanted, known] = sorted(needed), groups
    return found


def _node(w: State, n: int, values: dict[int, Columns], live: list[int]) -> Columns:
    i = w.tape.code[n]
    size = len(w.entries)
    out = [0] * size
    a = values[i.a] if i.a >= 0 else out
    b = values[i.b] if i.b >= 0 else out
    everything = w.all
    match i.op:
        case "base":
            _base(w, i.name, out, live)
        case "or":
            for k in live:
                out[k] = a[k] | b[k]
        case "and":
            for k in live:
                out[k] = a[k] & b[k]
        case "sub":
            for k in live:
                out[k] = a[k] & ~b[k]
        case "seq":
            _follow(a, b, out, live, w.compiled.kinds[i.a], w.compiled.kinds[i.b])
        case "inv":
            for k in live:
                out[k] = a[k]
            out = transpose(out) if size <= MAX_TRANSPOSED else inverse(out)
        case "plus" | "star":
            close_transitively(a, out, live)
            if i.op == "star":
                for k in live:
                    out[k] |= 1 << k
        case "opt":
            for k in live:
                out[k] = a[k] | 1 << k
        case "prod":
            first = sum(1 << k for k in live if a[k])
            for k in live:
                out[k] = first if b[k] else 0
        case "comp":
            for k in live:
                out[k] = everything & ~a[k]
        case "compset":
            for k in live:
                out[k] = (1 << k) & ~a[k]
        case "rng":
            for k in live:
                out[k] = 1 << k if a[k] else 0
        case "dom":
            reached = 0
            for k in live:
                reached |= a[k]
            for k in live:
                out[k] = reached & 1 << k
    return out


def transpose(a: Columns) -> Columns:
    """Return the inverse of a relation, all pairs at once: two quarters of a matrix of bits change places, then those
    of each quarter, and so on. A relation that relates most events is inverted 20 times as fast as pair by pair.
    """
    size = 1 << max(len(a) - 1, 7).bit_length()
    width = size // 8
    matrix = int.from_bytes(b"".join(column.to_bytes(width, "little") for column in a), "little")
    for half, above in _quarters(size):
        shift = half * (size - 1)
        moved = (matrix ^ matrix >> shift) & above
        matrix ^= moved ^ moved << shift
    text = matrix.to_bytes(size * width, "little")
    return [int.from_bytes(text[k * width : (k + 1) * width], "little") for k in range(len(a))]


@cache
def _quarters(size: int) -> tuple[tuple[int, int], ...]:
    """Return, for each step of a transposition, half the side of its blocks and the bits of the quarters that change
    places with those below.
    """
    found = []
    half = size // 2
    while half:
        row = sum(((1 << half) - 1) << at + half for at in range(0, size, 2 * half))
        block = sum(row << k * size for k in range(half))
        found.append((half, sum(block << at * size for at in range(0, size, 2 * half))))
        half //= 2
    return tuple(found)


def _follow(a: Columns, b: Columns, out: Columns, live: list[int], kind_a: str, kind_b: str) -> None:
    """``a; b``: a set on either side chooses from the other; what several events come after is gathered once."""
    some = sum(1 << k for k in live if a[k])
    if kind_a == SET:
        for k in live:
            out[k] = b[k] & some
        return
    if kind_b == SET:
        for k in live:
            out[k] = a[k] if b[k] else 0
        return
    known = {0: 0}
    latest: deque[int] = deque((0,), MAX_RECENT_SETS)
    for k in live:
        x = b[k] & some
        found = known.get(x)
        if found is None:
            part = x ^ 1 << x.bit_length() - 1  # of a program order, what came before the last one
            if part not in known:
                part = max((y for y in latest if not y & ~x), key=int.bit_count, default=0)
            found = known[x] = known[part] | _union(a, x & ~part)
            latest.append(x)
        out[k] = found


def _union(columns: Columns, x: int) -> int:
    result = 0
    while x:
        low = x & -x
        result |= columns[low.bit_length() - 1]
        x ^= low
    return result


def close_transitively(a: Columns, out: Columns, live: list[int]) -> None:
    """Return the transitive closure: first of the edges in the order of the events, then of the others."""
    come, back = 0, []
    for k in live:
        bit, rest = 1 << k, a[k] & come
        reached = rest
        while rest:  # what comes before one of them need not be gone through again
            last = rest.bit_length() - 1
            reached |= out[last]
            rest &= ~(out[last] | 1 << last)
        out[k] = reached
        come |= bit
        if a[k] & ~reached:
            back.append(k)
    for v in back:
        more = a[v] | _union(out, a[v] & ~out[v])
        if not more & ~out[v]:
            continue
        bit = 1 << v
        for k in live:  # whatever comes after this one comes after those too
            if k == v or out[k] & bit:
                out[k] |= more


def _base(w: State, name: str, out: Columns, live: list[int]) -> None:
    if is_set(name):
        for k in live:
            entry = w.entries[k]
            assert entry is not None
            out[k] = 1 << k if name == "_" or name in entry.sets else 0
    elif name in ("id", "same-access"):
        for k in live:
            out[k] = 1 << k
    elif name in DYNAMIC:
        for k in live:
            entry = w.entries[k]
            assert entry is not None
            out[k] |= entry.edges.get(name, 0)
            back = entry.back.get(name, 0)
            while back:
                low = back & -back
                out[low.bit_length() - 1] |= 1 << k
                back ^= low
    elif name != "syncbar":
        for k in live:
            entry = w.entries[k]
            assert entry is not None
            out[k] = w.static(name, entry, 1 << k)[0] & w.all
