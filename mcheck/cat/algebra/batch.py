"""Evaluating a tape on many candidate executions at once.

The candidates of a batch are the bits of an integer: a pair of events that is related in some candidates carries a
*mask*
with a bit for each of them. Intersecting, joining and composing relations are then a few integer operations for the
whole
batch, however many candidates it holds. Pairs that hold in every candidate are in the static lower bound and carry no
mask;
pairs above the static upper bound are never looked at.

``backward`` is the same computation in reverse: given which pairs an axiom could not bear, it finds for every pair of
an
unknown relation the candidates in which adding that pair would at once violate the axiom.
"""

from __future__ import annotations

from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.bounds import Bounds
from mcheck.cat.algebra.tape import Tape

Masks = dict[int, dict[int, int]]
"""i -> j -> mask of the candidates in which (i, j) holds; only pairs between the static bounds, no zero masks."""


def add(out: Masks, i: int, j: int, mask: int) -> None:
    row = out.get(i)
    if row is None:
        out[i] = {j: mask}
    else:
        row[j] = row.get(j, 0) | mask


class Plan:
    """What of a tape is to be computed on one structure: static bounds, their bits as lists, the live nodes."""

    def __init__(self, tape: Tape, bounds: Bounds, roots: list[int]) -> None:
        self.tape = tape
        self.low = bounds.low
        self.high = bounds.high
        self.n = len(bounds.low[0]) if bounds.low else 0
        self.order = self._live(roots)
        self.low_bits: dict[int, list[list[int]]] = {}

    def _live(self, roots: list[int]) -> list[int]:
        seen: set[int] = set()
        todo = list(roots)
        code, group_of = self.tape.code, self.tape.group_of
        while todo:
            k = todo.pop()
            if k in seen or self.low[k] == self.high[k]:
                continue
            seen.add(k)
            i = code[k]
            todo += [x for x in (i.a, i.b) if x >= 0]
            if i.op == "rec":
                todo += [body for _, body, kind in self.tape.groups[group_of[k]] if kind == 0]
        return sorted(seen)

    def rows(self, node: int) -> list[list[int]]:
        """The lower bound of a node as lists of successors."""
        found = self.low_bits.get(node)
        if found is None:
            found = self.low_bits[node] = [bits.bits(row) for row in self.low[node]]
        return found


class Evaluation:
    """The values of all live nodes for one batch. ``full`` has a bit for each candidate that is still alive."""

    def __init__(self, plan: Plan, full: int, bases: dict[str, Masks]) -> None:
        self.plan = plan
        self.full = full
        self.value: dict[int, Masks] = {}
        self.bases = bases
        self._run()

    def _run(self) -> None:
        plan, tape = self.plan, self.plan.tape
        live = set(plan.order)
        done: set[int] = set()
        for k in plan.order:
            if k in done:
                continue
            i = tape.code[k]
            if i.op == "rec" or tape.group_of[k] >= 0:
                group = tape.groups[tape.group_of[k]]
                start, end, _ = group[-1]
                inner = [x for x in plan.order if start <= x < end]
                variables = [(v, body) for v, body, kind in group if kind == 0 and v in live]
                for v, _ in variables:
                    self.value[v] = {}
                while True:
                    for x in inner:
                        if tape.code[x].op != "rec":
                            self.value[x] = self._step(x)
                    new = {v: self._clip(self.value.get(body, {}), v, body) for v, body in variables}
                    if all(new[v] == self.value[v] for v, _ in variables):
                        break
                    self.value.update(new)
                done.update(inner)
            else:
                self.value[k] = self._step(k)

    def _clip(self, masks: Masks, node: int, source: int) -> Masks:
        """The masks of ``source`` as those of ``node``, whose lower bound may be larger."""
        low, src_low, full = self.plan.low[node], self.plan.low[source], self.full
        out: Masks = {}
        for i, row in masks.items():
            kept = {j: m for j, m in row.items() if not low[i] >> j & 1}
            if kept:
                out[i] = kept
        for i, extra in enumerate(src_low):
            extra &= ~low[i]
            for j in bits.bits(extra):
                add(out, i, j, full)
        return out

    def get(self, node: int) -> Masks:
        """The masks of a node between its static bounds."""
        return self.value.get(node, {})

    def _step(self, k: int) -> Masks:
        i = self.plan.tape.code[k]
        low = self.plan.low[k]
        a, b = i.a, i.b
        match i.op:
            case "base":
                full = self.full
                out: Masks = {}
                for x, row in self.bases.get(i.name, {}).items():
                    kept = {j: m & full for j, m in row.items() if m & full and not low[x] >> j & 1}
                    if kept:
                        out[x] = kept
                return out
            case "or":
                return self._or(low, self.get(a), self.get(b))
            case "and":
                return self._and(a, b)
            case "sub":
                return self._sub(a, b)
            case "seq":
                return self._seq(low, a, b)
            case "inv":
                out = {}
                for x, row in self.get(a).items():
                    for y, m in row.items():
                        add(out, y, x, m)
                return out
            case "plus" | "star":
                return self._plus(low, a, star=i.op == "star")
            case "opt":
                return {x: kept for x, row in self.get(a).items() if (kept := {y: m for y, m in row.items() if y != x})}
            case "comp" | "compset":
                return self._complement(k, a, diagonal=i.op == "compset")
            case "prod":
                return self._product(low, a, b)
            case "dom":
                out = {}
                for x, row in self.get(a).items():
                    if not low[x]:
                        for m in row.values():
                            add(out, x, x, m)
                return out
            case "rng":
                out = {}
                for row in self.get(a).values():
                    for y, m in row.items():
                        if not low[y]:
                            add(out, y, y, m)
                return out
        raise KeyError(i.op)

    def _or(self, low: Rows, p: Masks, q: Masks) -> Masks:
        out: Masks = {}
        for masks in (p, q):
            for x, row in masks.items():
                have = low[x]
                for y, m in row.items():
                    if not have >> y & 1:
                        add(out, x, y, m)
        return out

    def _and(self, a: int, b: int) -> Masks:
        out: Masks = {}
        p, q = self.get(a), self.get(b)
        low_a, low_b = self.plan.low[a], self.plan.low[b]
        for x, row in p.items():
            other, have = q.get(x), low_b[x]
            kept = {}
            for y, m in row.items():
                if have >> y & 1:
                    kept[y] = m
                elif other is not None and (v := other.get(y, 0) & m):
                    kept[y] = v
            if kept:
                out[x] = kept
        for x, row in q.items():
            have = low_a[x]
            if have:
                for y, m in row.items():
                    if have >> y & 1:
                        add(out, x, y, m)
        return out

    def _sub(self, a: int, b: int) -> Masks:
        out: Masks = {}
        plan, full = self.plan, self.full
        low_b, q = plan.low[b], self.get(b)
        for x, row in self.get(a).items():
            have, other = low_b[x], q.get(x, {})
            for y, m in row.items():
                if not have >> y & 1 and (v := m & ~other.get(y, 0)):
                    add(out, x, y, v)
        for x, row_bits in enumerate(plan.low[a]):
            disputed = row_bits & plan.high[b][x] & ~low_b[x]
            if disputed:
                other = q.get(x, {})
                for y in bits.bits(disputed):
                    if v := full & ~other.get(y, 0):
                        add(out, x, y, v)
        return out

    def _complement(self, k: int, a: int, *, diagonal: bool) -> Masks:
        out: Masks = {}
        plan, full, p = self.plan, self.full, self.get(a)
        for x in range(plan.n):
            disputed = plan.high[k][x] & ~plan.low[k][x]
            if diagonal:
                disputed &= 1 << x
            other = p.get(x, {})
            for y in bits.bits(disputed):
                if v := full & ~other.get(y, 0):
                    add(out, x, y, v)
        return out

    def _seq(self, low: Rows, a: int, b: int) -> Masks:
        out: Masks = {}
        plan = self.plan
        p, q = self.get(a), self.get(b)
        if q:
            touched = 0
            for z in q:
                touched |= 1 << z
            low_a = plan.low[a]
            for x in range(plan.n):
                middle = low_a[x] & touched
                if middle:
                    have = low[x]
                    acc = out.get(x)
                    if acc is None:
                        acc = {}
                    while middle:
                        bit = middle & -middle
                        middle ^= bit
                        for y, m in q[bit.bit_length() - 1].items():
                            if not have >> y & 1:
                                acc[y] = acc.get(y, 0) | m
                    if acc:
                        out[x] = acc
        if p:
            rows_b = plan.rows(b)
            for x, row in p.items():
                have = low[x]
                acc = out.get(x)
                if acc is None:
                    acc = {}
                for z, m in row.items():
                    for y in rows_b[z]:
                        if not have >> y & 1:
                            acc[y] = acc.get(y, 0) | m
                    other = q.get(z)
                    if other:
                        for y, w in other.items():
                            if not have >> y & 1 and (v := m & w):
                                acc[y] = acc.get(y, 0) | v
                if acc:
                    out[x] = acc
        return out

    def _plus(self, low: Rows, a: int, *, star: bool) -> Masks:
        """The closed lower bound, with the pairs of ``a`` added one by one: each joins all that reaches it to all it
        reaches.
        """
        edges = self.get(a)
        out: Masks = {}
        into: dict[int, dict[int, int]] = {}  # the transpose of out
        low_in = bits.inverse(low)
        full = self.full
        for x, row in edges.items():
            for y, m in row.items():
                if low[x] >> y & 1 or not m & ~out.get(x, {}).get(y, 0):
                    continue
                before = [(x, m)]
                before += [(w, m) for w in bits.bits(low_in[x]) if w != x]
                before += [(w, v) for w, c in into.get(x, {}).items() if w != x and (v := c & m)]
                after = [(y, full)]
                after += [(z, full) for z in bits.bits(low[y]) if z != y]
                after += [(z, c) for z, c in out.get(y, {}).items() if z != y]
                for w, c in before:
                    have = low[w]
                    acc = out.setdefault(w, {})
                    for z, d in after:
                        if not have >> z & 1 and (v := c & d):
                            old = acc.get(z, 0)
                            if v & ~old:
                                acc[z] = old | v
                                into.setdefault(z, {})[w] = old | v
        if star:
            for x in list(out):
                out[x].pop(x, None)
        return {x: row for x, row in out.items() if row}

    def _product(self, low: Rows, a: int, b: int) -> Masks:
        out: Masks = {}
        plan = self.plan
        p, q = self.get(a), self.get(b)
        left = [(x, self.full) for x in range(plan.n) if plan.low[a][x]] + [(x, row[x]) for x, row in p.items()]
        right = [(y, self.full) for y in range(plan.n) if plan.low[b][y]] + [(y, row[y]) for y, row in q.items()]
        for x, m in left:
            for y, w in right:
                if not low[x] >> y & 1 and (v := m & w):
                    add(out, x, y, v)
        return out

    # --- checks ---------------------------------------------------------------------------------

    def violated(self, test: str, node: int) -> int:
        """The candidates in which ``test`` on the value of ``node`` fails."""
        low, value = self.plan.low[node], self.get(node)
        bad = 0
        if test == "empty":
            if any(low):
                return self.full
            for row in value.values():
                for m in row.values():
                    bad |= m
            return bad
        if any(row >> x & 1 for x, row in enumerate(low)):
            return self.full
        for x, row in value.items():
            bad |= row.get(x, 0)
        return bad

    # --- reverse --------------------------------------------------------------------------------

    def backward(self, seeds: dict[int, Masks], wanted: frozenset[str]) -> dict[str, Masks]:
        """For each base in ``wanted``: the pairs whose addition alone makes one of the seeded pairs hold.

        ``seeds`` gives, for some nodes, the pairs that must not be added to them.
        """
        plan, code = self.plan, self.plan.tape.code
        demand: dict[int, Masks] = dict(seeds)
        result: dict[str, Masks] = {}
        for k in reversed(plan.order):
            d = demand.pop(k, None)
            if not d:
                continue
            i = code[k]
            if i.op == "base":
                if i.name in wanted:
                    self._merge(result.setdefault(i.name, {}), d)
                continue
            for arg, contribution in self._pull(k, d):
                if contribution:
                    self._merge(demand.setdefault(arg, {}), self._open(arg, contribution))
        return result

    @staticmethod
    def _merge(into: Masks, masks: Masks) -> None:
        for x, row in masks.items():
            for y, m in row.items():
                add(into, x, y, m)

    def _open(self, node: int, masks: Masks) -> Masks:
        """Only the pairs that are not settled by the static bounds."""
        low, high = self.plan.low[node], self.plan.high[node]
        out: Masks = {}
        for x, row in masks.items():
            free = high[x] & ~low[x]
            kept = {y: m for y, m in row.items() if m and free >> y & 1}
            if kept:
                out[x] = kept
        return out

    def _pull(self, k: int, d: Masks) -> list[tuple[int, Masks]]:
        i = self.plan.tape.code[k]
        a, b = i.a, i.b
        match i.op:
            case "or":
                return [(a, d), (b, d)]
            case "and":
                return [(a, self._meet(d, b)), (b, self._meet(d, a))]
            case "sub":
                return [(a, self._without(d, b))]
            case "inv":
                out: Masks = {}
                for x, row in d.items():
                    for y, m in row.items():
                        add(out, y, x, m)
                return [(a, out)]
            case "opt":
                return [(a, d)]
            case "seq":
                return [(a, self._left_factor(d, a, b)), (b, self._right_factor(d, a, b))]
            case "plus" | "star":
                return [(a, self._closure_factor(k, d, a))]
            case _:
                return []  # no inference through domains, products and recursion: sound, since this only prunes early

    def _mask(self, node: int, x: int, y: int) -> int:
        if self.plan.low[node][x] >> y & 1:
            return self.full
        return self.get(node).get(x, {}).get(y, 0)

    def _meet(self, d: Masks, node: int) -> Masks:
        out: Masks = {}
        for x, row in d.items():
            kept = {y: v for y, m in row.items() if (v := m & self._mask(node, x, y))}
            if kept:
                out[x] = kept
        return out

    def _without(self, d: Masks, node: int) -> Masks:
        out: Masks = {}
        for x, row in d.items():
            kept = {y: v for y, m in row.items() if (v := m & ~self._mask(node, x, y))}
            if kept:
                out[x] = kept
        return out

    def _left_factor(self, d: Masks, a: int, b: int) -> Masks:
        """Pairs (x, z) of a for which some (z, y) of b leads into d."""
        out: Masks = {}
        plan = self.plan
        free = [plan.high[a][x] & ~plan.low[a][x] for x in range(plan.n)]
        rows_b, value_b = plan.rows(b), self.get(b)
        for x, row in d.items():
            if not free[x]:
                continue
            for z in bits.bits(free[x]):
                acc = 0
                for y in rows_b[z]:
                    acc |= row.get(y, 0)
                for y, m in value_b.get(z, {}).items():
                    acc |= row.get(y, 0) & m
                if acc:
                    add(out, x, z, acc)
        return out

    def _right_factor(self, d: Masks, a: int, b: int) -> Masks:
        """Pairs (z, y) of b for which some (x, z) of a leads into d."""
        out: Masks = {}
        plan = self.plan
        free = [plan.high[b][z] & ~plan.low[b][z] for z in range(plan.n)]
        rows_a, value_a = plan.rows(a), self.get(a)
        for x, row in d.items():
            for z, w in [(z, self.full) for z in rows_a[x]] + list(value_a.get(x, {}).items()):
                if free[z]:
                    for y, m in row.items():
                        if free[z] >> y & 1 and (v := m & w):
                            add(out, z, y, v)
        return out

    def _closure_factor(self, k: int, d: Masks, a: int) -> Masks:
        """Pairs (x, y) of a that would put some (u, v) of d into the closure k: u reaches x and y reaches v."""
        out: Masks = {}
        plan = self.plan
        value, full = self.get(k), self.full
        rows_k = plan.rows(k)
        backwards: dict[int, dict[int, int]] = {}  # event -> what reaches it
        for u in range(plan.n):
            for v in rows_k[u]:
                backwards.setdefault(v, {})[u] = full
            for v, m in value.get(u, {}).items():
                backwards.setdefault(v, {})[u] = m
        half: Masks = {}  # (u, y): y reaches some v with (u, v) in d
        for u, row in d.items():
            acc = dict(row)
            for v, m in row.items():
                for y, w in backwards.get(v, {}).items():
                    if z := m & w:
                        acc[y] = acc.get(y, 0) | z
            half[u] = acc
        for x in range(plan.n):
            free = plan.high[a][x] & ~plan.low[a][x]
            if not free:
                continue
            sources = dict(backwards.get(x, {}))
            sources[x] = full
            for u, w in sources.items():
                for y, m in half.get(u, {}).items():
                    if free >> y & 1 and (v := m & w):
                        add(out, x, y, v)
        return out
