"""Proofs for every number of CTAs that are alike: pairs of them stand for all.

A sketch has CTAs that are alike, as many as a constant that is any number says, and possibly others (fixed ones).

*Conditions.* ``mcheck.frontend.litmus.alike_ctas.family`` checks them on the text, for every number of CTAs at once.

1. The alike CTAs do the same, but for the places of weak accesses of global memory and the values that these store,
   and for how often loops of such accesses go round. They are in no clusters. Asynchronous copies go between global
   memory and shared memory of the CTA; only threads of the CTA wait for them, by its mbarriers and their groups.
2. What they access strongly is the counter, to which each of them adds one, once, at scope gpu or wider; flags, which
   fixed CTAs alone write; and words that are reduced into, by ``red`` or by copies. Nobody accesses the first two
   weakly, but for the thread of the last CTA that has drawn the last number, afterwards.
   Reductions of an object go through one proxy, at scope gpu or wider, and elements of two of them overlap in whole or
   not at all: so they are morally strong (8.7). Either all are of the same words in all CTAs, nobody accesses these
   strongly, and no alike CTA writes them weakly; or nothing else accesses the object.
3. Branches and addresses depend on no number of a CTA, on no value that weak accesses of global memory read, and on
   the number drawn from the counter only in so far as it is the last one. Waits are for flags, or for the counter to
   say that all CTAs have counted themselves.
4. Accesses are in bounds and aligned for every number of CTAs (``check_bounds``).
5. Instead of a counter there may be turns. One thread of each alike CTA waits once for a value of a word, and later
   stores one, under no condition, by strong accesses at scope gpu or wider; nobody else accesses the words. What CTA k
   stores ends the wait of CTA k + 1, no other store does, and the initial value ends that of the first CTA alone:
   either values grow with the number of the CTA, or each has its own word. The store releases what the wait has
   acquired: its release, or the fence before it, comes not before the acquire, or the fence behind that. Or the values
   grow with tickets, which CTAs draw as they would count themselves; then no place depends on their numbers.

*The argument.* Take an execution with n CTAs, n at least 3, that has an error: a race of two threads, or one that
waits forever. Leave out all events of the alike CTAs but two, i and j, which include those of the error. The result is
an execution of i, j and the fixed CTAs, with the counter at n - 2 in the beginning; at n - 3 if neither is the last:

* Control is as before (3): whoever reads a flag still finds the store (2); the atomics of i and j are next to each
  other now, draw their numbers in the same order, and the last of all CTAs draws the last number if it is i or j. What
  waits for the counter does so where neither asks for the number drawn; the counter has its final value in the end.
* Loads whose store is left out read another one, or what was there at first. No control depends on that (3).
* No order is added. An atomic of i that was observed by one of j, or by a wait, through atomics of others (8.9.2; all
  are morally strong, 2) is observed directly. A reduction acquires nothing (8.8), and what it returns nobody reads.
  What mbarriers, barriers and groups order is inside one CTA (1). Proxy fences of others are left out, which takes
  order away. A race remains one, and so does a proxy fence that is missing.
* A thread that waited forever still does: for a flag that is not set, for another thread of its CTA, or for the
  counter, because a CTA does not come to count itself; then that one waits forever, and is taken for i.

*Turns.* By 5, in every execution the same store ends each wait; CTA k is that with the k-th ticket, if those are drawn.
So waits end in the order of the numbers, but behind a CTA that waits forever for something else: that one is taken for
i. In the execution of i and j, i < j, the wait of i is left out, and j waits for the store of i, as CTA i + 1 does. No
order is added: all that this store releases comes before the wait of j in the execution of all CTAs, too, by the stores
and waits in between (5; 8.9.5: base causality order is transitive). Draws of tickets are kept, in any order. All pairs
have the same executions then, but for places; yet it matters which of the two has the first access of a conflict, and
conflicts with a fixed CTA have to be those of i, which knows less of it.

With another pair, and another number of CTAs, there are the same executions up to the places of weak accesses, and what
they store: those do not order anything, and orders of the rest decide which of them race. So those pairs suffice in
which each two accesses conflict that conflict for any number of CTAs; what is in a loop without rounds does not. Those
of one thread do not count, unless one of them is asynchronous.
``choose_pairs`` collects conflicts in small grids, and proves that larger ones have no other ones. Numbers below three
are checked by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import Any

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.ir import ops
from mcheck.ir.condition import Condition
from mcheck.ir.cta_family import (
    CTA,
    NUMBER,
    CtaFamily,
    FamilyAccess,
    FamilyCounter,
    FamilyTurns,
    Linear,
    NotAlike,
    Variable,
)
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import Instance, MemoryMap
from mcheck.ir.program import Program, Thread

LEAST = 3
"""The smallest number of CTAs that pairs stand for."""
SAMPLED = (3, 4, 5)
"""The numbers of CTAs among which conflicts are collected."""
MAX_ROWS = 4_000
"""Maximum number of accesses in a sample, rounds of loops one by one."""
MAX_ACCESSES = 400
"""Maximum number of accesses of a CTA."""
MAX_PAIRS = 16
"""Maximum number of pairs that are followed."""
EFFORT = 400_000
"""Z3's limit for a question (its rlimit): about a second."""

Kind = tuple[int, int, int]
"""A kind of conflict: in which CTAs it is, and the numbers of the accesses."""
WITHIN, ASCENDING, DESCENDING = range(3)
"""In one CTA or with a fixed one; in two that are alike, of which the first one has the first access; or the second
one, which is told apart where CTAs take turns.
"""


@dataclass(frozen=True, slots=True)
class CtaPair:
    """Two of so many CTAs that are alike, by their numbers in the grid."""

    ctas: int
    first: int
    second: int


# --- bounds -----------------------------------------------------------------------------------------------------


def check_bounds(family: CtaFamily, limit: Limit) -> None:
    """Check that accesses are in bounds, however many CTAs there are. Raises ``NotAlike``."""
    import z3

    for access in (*family.accesses, *(() if family.turns is None else family.turns.places)):
        limit.check()
        question = _Question(family)
        values = question.cta(access, "a")
        begin = question.value(access.offset, values)
        end = question.value(family.sizes[access.object], values)
        question.solver.add(z3.Or(begin < 0, begin + access.size > end))
        found = question.solver.check()
        if found == z3.unsat:
            continue
        where = ""
        if found == z3.sat:
            where = f" with {family.parameter} = {question.solver.model().eval(question.number, model_completion=True)}"
        raise NotAlike(f"an access of {access.object} may leave it{where}", access.span)


class _Question:
    """A question to Z3 about accesses, for any number of CTAs of at least ``least``."""

    def __init__(self, family: CtaFamily, least: int = 1) -> None:
        import z3

        self.family = family
        self.context = z3.Context()
        self.solver = z3.Solver(ctx=self.context)
        self.solver.set("rlimit", EFFORT)
        self.number = z3.Int("n", self.context)
        self.solver.add(self.number >= family.number_with(least))

    def value(self, form: Linear, values: Mapping[str, Any]) -> Any:
        """The value of a form, as a term."""
        import z3

        total = z3.IntVal(form.constant, self.context)
        for name, factor in form.terms:
            total = total + factor * (self.number if name == NUMBER else values[name])
        return total

    def cta(self, access: FamilyAccess, name: str, here: Any = None) -> dict[str, Any]:
        """The variables of an access in some CTA, ``here`` if given. A remainder whose quotient is two or more is any
        number below its divisor.
        """
        import z3

        if here is None:
            here = z3.Int(f"{name}.cta", self.context)
        values = {CTA: here}
        family = self.family
        if access.cta is None:
            self.solver.add(here >= family.first, here < self.number + family.shift)
        for one in access.variables:
            mine = values[one.name] = z3.Int(f"{name}.{one.name}", self.context)
            high = self.value(one.high, values)
            self.solver.add(mine >= self.value(one.low, values), mine < high)
            if one.dividend is not None:
                dividend = self.value(one.dividend, values)
                self.solver.add(
                    z3.Implies(dividend < high, mine == dividend),
                    z3.Implies(z3.And(dividend >= high, dividend < 2 * high), mine == dividend - high),
                )
        return values


# --- conflicts --------------------------------------------------------------------------------------------------


def choose_pairs(family: CtaFamily, limit: Limit) -> list[CtaPair]:
    """Pairs of CTAs in which each two accesses conflict that do so for any number of CTAs. Raises ``NotAlike``."""
    if len(family.accesses) > MAX_ACCESSES:
        raise NotAlike(f"a CTA has more than {MAX_ACCESSES} accesses")
    shown: dict[CtaPair, set[Kind]] = {}
    for ctas in SAMPLED:
        limit.check()
        shown.update(_collect(family, ctas))
    wanted = set().union(*shown.values())
    for kind in _possible(family):
        if kind not in wanted:
            limit.check()
            _check_apart(family, kind)
    pairs: list[CtaPair] = []
    while wanted or not pairs:
        best = max(shown, key=lambda pair: (len(shown[pair] & wanted), -pair.ctas))
        pairs.append(best)
        wanted -= shown[best]
        if len(pairs) > MAX_PAIRS:
            raise NotAlike(f"the conflicts of CTAs are of more kinds than {MAX_PAIRS} pairs show")
    return pairs


def _possible(family: CtaFamily) -> Iterator[Kind]:
    """Every kind of conflict that accesses of one object could have."""
    accesses = family.accesses
    for k, one in enumerate(accesses):
        for m in range(k, len(accesses)):
            other = accesses[m]
            if one.object != other.object or not _may_conflict(one, other):
                continue
            if k != m and _within(one, other):
                yield WITHIN, k, m
            if one.cta is None and other.cta is None:
                yield ASCENDING, k, m
                if family.turns is not None and k != m:
                    yield DESCENDING, k, m


def _may_conflict(one: FamilyAccess, other: FamilyAccess) -> bool:
    """Whether two accesses of a common byte conflict: one writes, and they are not both reductions."""
    return (one.writes or other.writes) and not (one.reduces and other.reduces)


def _within(one: FamilyAccess, other: FamilyAccess) -> bool:
    """Whether two accesses of one CTA may be unordered, or lack a proxy fence: not if a thread does one after the
    other.
    """
    return one.thread != other.thread or one.asynchronous or other.asynchronous


def _collect(family: CtaFamily, ctas: int) -> dict[CtaPair, set[Kind]]:
    """The kinds of conflicts of each pair of so many CTAs."""
    number = family.number_with(ctas)
    rows: list[Row] = []
    for k, access in enumerate(family.accesses):
        places = range(family.first, family.first + ctas) if access.cta is None else (None,)
        for cta in places:
            for begin in set(_offsets(access, {NUMBER: number, **({} if cta is None else {CTA: cta})})):
                rows.append((access.object, begin, begin + access.size, k, cta))
        if len(rows) > MAX_ROWS:
            raise NotAlike("CTAs access too many places")
    between: dict[tuple[int, int], set[Kind]] = {}
    within: dict[int | None, set[Kind]] = {}
    for one, other in _meetings(family.accesses, rows):
        (*_, k, mine), (*_, m, theirs) = sorted((one, other), key=lambda row: row[3])
        if mine is not None and theirs is not None and mine != theirs:
            way = DESCENDING if family.turns is not None and k != m and mine > theirs else ASCENDING
            between.setdefault((min(mine, theirs), max(mine, theirs)), set()).add((way, k, m))
        elif k != m and _within(family.accesses[k], family.accesses[m]):
            within.setdefault(theirs if mine is None else mine, set()).add((WITHIN, k, m))
    found: dict[CtaPair, set[Kind]] = {}
    for first in range(family.first, family.first + ctas):
        for second in range(first + 1, family.first + ctas):
            kinds = between.get((first, second), set())
            # of CTAs that take turns, the second one may be ordered after a fixed one by the first one alone
            for alone in (first, None) if family.turns is not None else (first, second, None):
                kinds = kinds | within.get(alone, set())
            found[CtaPair(ctas, first, second)] = kinds
    return found


def _offsets(access: FamilyAccess, values: dict[str, int], at: int = 0) -> Iterator[int]:
    """The places of an access in one CTA."""
    if at == len(access.variables):
        yield access.offset.value(values)
        return
    one: Variable = access.variables[at]
    high = one.high.value(values)
    numbers = range(one.low.value(values), high) if one.dividend is None else (one.dividend.value(values) % high,)
    for value in numbers:
        yield from _offsets(access, {**values, one.name: value}, at + 1)


Row = tuple[str, int, int, int, int | None]


def _meetings(accesses: Sequence[FamilyAccess], rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs of accesses with a common byte, of which one writes."""
    rows.sort(key=lambda row: row[:3])
    live: list[Row] = []
    for row in rows:
        live = [other for other in live if other[0] == row[0] and other[2] > row[1]]
        for other in live:
            if _may_conflict(accesses[other[3]], accesses[row[3]]):
                yield other, row
        live.append(row)


def _check_apart(family: CtaFamily, kind: Kind) -> None:
    """Check that two accesses never conflict, however many CTAs there are. Raises ``NotAlike``."""
    import z3

    way, k, m = kind
    one, other = family.accesses[k], family.accesses[m]
    if _divisor_apart(one, other):
        return
    question = _Question(family, LEAST)
    mine = question.cta(one, "a")
    alike = one.cta is None and other.cta is None
    theirs = question.cta(other, "b", mine[CTA] if alike and way == WITHIN else None)
    if way != WITHIN:
        question.solver.add(mine[CTA] != theirs[CTA])
    if way != WITHIN and family.turns is not None and k != m:
        question.solver.add(mine[CTA] < theirs[CTA] if way == ASCENDING else mine[CTA] > theirs[CTA])
    here, there = question.value(one.offset, mine), question.value(other.offset, theirs)
    question.solver.add(here < there + other.size, there < here + one.size)
    if question.solver.check() != z3.unsat:
        raise NotAlike(f"accesses of {one.object} conflict in larger grids as in no small one", one.span)


def _divisor_apart(one: FamilyAccess, other: FamilyAccess) -> bool:
    """Whether the places of two accesses differ by an amount that the common divisor of what varies rules out."""
    divisor = gcd(*(factor for access in (one, other) for _, factor in access.offset.terms))
    if divisor == 0:
        apart = one.offset.constant - other.offset.constant
        return apart >= other.size or -apart >= one.size
    rest = (one.offset.constant - other.offset.constant) % divisor
    return rest >= other.size and divisor - rest >= one.size


# --- programs ---------------------------------------------------------------------------------------------------


def pair_programs(program: Program, family: CtaFamily, pair: CtaPair) -> Iterator[Program]:
    """The programs of a pair of CTAs with the fixed ones; ``program`` is that with all CTAs."""
    kept = {pair.first, pair.second, *family.fixed}
    threads = [t for t in program.threads if t.place.cta.cluster in kept]
    two = replace(
        program, threads=tuple(replace(t, index=k) for k, t in enumerate(threads)), condition=Condition(kind="none")
    )
    counter = family.counter
    if counter is None:
        yield two if family.turns is None else _with_turns(two, family.turns, pair)
        return
    for before in (2,) if counter.waits else (2, 3):
        yield replace(two, memory=_with_count(program.memory, counter, counter.first + pair.ctas - before))


def _with_turns(program: Program, turns: FamilyTurns, pair: CtaPair) -> Program:
    """The program in which the first CTA waits for nobody, and the second one for it."""
    signals = {number: turns.value.value({CTA: number}) for number in (pair.first, pair.second)}
    where: Expr | None = None
    threads: list[Thread] = []
    for thread in program.threads:  # the CTAs in ascending order
        number = thread.place.cta.cluster
        code = list(thread.code) if number in signals else []
        for at, op in enumerate(code):
            if op.span == turns.signal:
                assert isinstance(op, ops.Store)
                code[at] = replace(op, srcs=(Const(signals[number]),))
                where = op.address if number == pair.first else where
        threads.append(replace(thread, code=tuple(code)) if code else thread)
    assert where is not None, "each of the CTAs signals"
    for k, thread in enumerate(threads):
        number = thread.place.cta.cluster
        code = list(thread.code) if number in signals else []
        for at, op in enumerate(code):
            if op.span == turns.wait:
                assert isinstance(op, ops.Await)
                assert isinstance(op.inner, ops.Load)
                inner = replace(op.inner, address=where)
                awaits = replace(op, inner=inner, compare=("==", Const(signals[pair.first])))
                code[at] = awaits if number == pair.second else ops.Alu(op="nop", type="b32", dsts=(), srcs=())
        threads[k] = replace(thread, code=tuple(code)) if code else thread
    return replace(program, threads=tuple(threads))


def _with_count(memory: MemoryMap, counter: FamilyCounter, value: int) -> MemoryMap:
    """The memory with another initial value of the counter."""

    def changed(instance: Instance) -> Instance:
        item = instance.object
        if item.name != counter.object:
            return instance
        content = (item.init or b"").ljust(item.size, b"\0")
        word = value.to_bytes(counter.size, "little")
        content = content[: counter.offset] + word + content[counter.offset + counter.size :]
        return replace(instance, object=replace(item, init=content))

    return MemoryMap(tuple(map(changed, memory.instances)))
