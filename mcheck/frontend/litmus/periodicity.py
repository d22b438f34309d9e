"""Whether loops repeat that run ever so often: read off the text of a file, not off its unrolled code.

Every expression of a role is a function of the round. One that is *even* (``mcheck.frontend.litmus.quasi_affine``) with
a period P and a slope c fulfils e(k + P) = e(k) + c for every round k: constants, loop variables, sums of these, their
multiples, quotients and remainders by constants. Code repeats where every operand is even with slope 0, but for the
addresses that are read, or plainly written, in global objects, the coordinates of loads by a tensor map, and the values
of plain stores, where nothing depends on those. What is not of this kind (a product of rounds) is refused by name, so
whoever reads the answer knows what to change.

A comparison of what grows with a number, or with how often the loop runs, turns once: in one of the first rounds or of
the last ones. Those are left out of what repeats (``Cuts``): the first are part of what comes before it, the last ones
of what comes behind it, where they are at the same distance from the end whatever the number is.

The number of rounds is a constant that is any number, and may stand in bounds of loops that are nested in no other, in
comparisons, in sizes of global objects, and behind the loop. What holds of one of its values then holds of all: the
text does not know it otherwise. Or it is written, and large.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, gcd, lcm, prod

from mcheck.base.errors import Span
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.quasi_affine import (
    TRUTH,
    UNKNOWN,
    QuasiAffine,
    bounded_constant,
    constant,
    difference,
    multiply,
    quotient,
    remainder,
    total,
)
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Statement, Step
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary
from mcheck.ir.loop_unrolling import Aperiodic, Cuts, Rounds
from mcheck.ir.memory import MemObject
from mcheck.ir.resolve import expressions

ALIGNED = 32
"""What addresses go on by in a period is a multiple of this, the largest alignment that an instruction asks for."""
MAX_PERIOD = 4096
MAX_CUT = 256
"""So many rounds at the beginning or the end of a loop may be like no others."""
LONG = 96
"""A loop that is written to run as often as this is looked at as one that repeats."""

ROUND = QuasiAffine(1, 1, low=Fraction(0), high=Fraction(0), natural=True)
NUMBER = QuasiAffine(1, 0, 1, low=Fraction(0), high=Fraction(0), natural=True, counts=True)
"""How many rounds there are."""

READ: tuple[tuple[type[ops.Op], str], ...] = (
    (ops.Load, "address"), (ops.BulkCopy, "src"), (ops.CpAsync, "src"), (ops.Prefetch, "src"),
)  # fmt: skip
"""Operands that are addresses which are only read."""
WRITTEN: tuple[tuple[type[ops.Op], str], ...] = ((ops.BulkCopy, "dst"), (ops.Store, "address"))
"""Operands that are addresses which are only written, but by reductions and by what is no plain store."""


def find_periodic_loops(roles: Mapping[str, Role], objects: Mapping[str, MemObject], free: str | None) -> Rounds:
    """How the roles repeat over the constant ``free``, which stands in them by its name, or without one over loops
    that run often as they are written; raises ``Aperiodic``.
    """
    reader = _Reader(objects, free)
    for role in roles.values():
        reader.role(role.body)
    if not reader.loops:
        raise Aperiodic(f"no loop runs to {free}" if free is not None else "no loop runs often")
    period = lcm(1, *reader.periods)
    growing: dict[str, int] = {}
    written: dict[str, int] = {}
    for _, every, slope in reader.growing:
        period = lcm(period, every * (ALIGNED // gcd(ALIGNED, abs(slope))))
    if period > MAX_PERIOD:
        raise Aperiodic(f"the rounds repeat after {period} only")
    for name, every, slope in reader.growing:
        growing[name] = max(growing.get(name, 0), slope * (period // every))
    for name in reader.written:
        if len({slope * (period // every) for other, every, slope in reader.growing if other == name}) > 1:
            raise Aperiodic(f"addresses in {name}, which grow by different steps")
        written[name] = growing[name]
    values: dict[str, int | None] = {}
    for name, repeats in reader.values:
        others = values.get(name, 1)
        values[name] = None if repeats is None or others is None else lcm(repeats, others)
    return Rounds(period, growing, reader.loops, values, written, reader.coordinates, reader.counted, reader.least)


@dataclass(slots=True)
class _Paths:
    """What the statements so far have in common: whether a long loop is behind some of their ways, or all."""

    some: bool = False
    every: bool = False


@dataclass(slots=True)
class _Reader:
    """Reads the roles; collects the periods that it comes across, and what addresses go on by."""

    objects: Mapping[str, MemObject]
    free: str | None
    periods: set[int] = field(default_factory=set)
    growing: list[tuple[str, int, int]] = field(default_factory=list)
    values: list[tuple[str, int | None]] = field(default_factory=list)
    """Of plain stores the object that is written, if it is known, and after how many rounds what is written repeats,
    ``None`` if it grows.
    """
    coordinates: bool = False
    counted: bool = False
    written: set[str] = field(default_factory=set)
    loops: dict[Span, Cuts] = field(default_factory=dict)
    least: int = 0
    cuts: Cuts | None = None
    """Of the loop that is read."""
    beyond: int = 0
    """By how much that loop runs further than to the constant."""
    paths: _Paths = field(default_factory=_Paths)

    def role(self, body: Body) -> None:
        """Reads a role, and which of its loops are long."""
        self.paths = _Paths()
        self._outermost(body, {} if self.free is None else {self.free: NUMBER})

    def _outermost(self, body: Body, env: dict[str, QuasiAffine]) -> None:
        """Statements that are in no loop."""
        env = dict(env)
        for statement in body.steps:
            match statement:
                case Body():
                    self._outermost(statement, env)
                case If():
                    self._choice(statement, env)
                case For():
                    low, high = (self._of(e, env, statement.span) for e in (statement.low, statement.high))
                    if self._is_long(low, high):
                        self._long(statement, low, high, env)
                    else:
                        self._loop(statement, env)
                case _:
                    self._statement(statement, env)

    def _choice(self, choice: If, env: dict[str, QuasiAffine]) -> None:
        self._flat(choice.condition, env, choice.span, "a condition")
        before = self.paths
        after = []
        for body in (choice.then, choice.otherwise):
            self.paths = replace(before)
            self._outermost(body, env)
            after.append(self.paths)
        self.paths = _Paths(any(p.some for p in after), all(p.every for p in after))

    def _is_long(self, low: QuasiAffine, high: QuasiAffine) -> bool:
        if self.free is not None:
            return not low.along and bool(high.along)
        return low.value is not None and high.value is not None and high.value - low.value >= LONG

    def _long(self, loop: For, low: QuasiAffine, high: QuasiAffine, env: dict[str, QuasiAffine]) -> None:
        number = self.free or "a number that is large"
        if self.paths.some:
            raise Aperiodic(f"a second loop to {number}", loop.span)
        offset = high.low if (high.period, high.along, high.low) == (1, 1, high.high) else None
        if low.value is None or low.value < 0 or (self.free is not None and offset is None):
            raise Aperiodic(f"the bounds of a loop to {number}: they are to be a number and {number}", loop.span)
        count = None if self.free is not None else (high.value or 0) - low.value
        self.cuts, self.beyond = Cuts(low.value, count=count), int(offset or 0)
        inner = {**env, loop.variable: ROUND}
        for statement in loop.body.steps:
            self._statement(statement, inner)
        if not _says_something(loop.body):
            raise Aperiodic("a loop without a statement", loop.span)
        self.least = max(self.least, low.value + self.cuts.ahead + self.cuts.behind - self.beyond)
        self.loops[loop.span], self.cuts = self.cuts, None
        self.paths = _Paths(some=True, every=True)

    def _loop(self, loop: For, env: dict[str, QuasiAffine]) -> None:
        """A loop of as many rounds whatever the round around it, or the number, is."""
        low, high = self._of(loop.low, env, loop.span), self._of(loop.high, env, loop.span)
        self._steady(low, loop.span)
        self._steady(high, loop.span)
        self.periods |= {low.period, high.period}
        if difference(high, low).grows:
            raise Aperiodic("how often a loop runs", loop.span)
        last = None if high.high is None else high.high - 1
        self._body(loop.body, {**env, loop.variable: replace(low, value=None, high=last)})

    def _body(self, body: Body, env: dict[str, QuasiAffine]) -> None:
        env = dict(env)
        for statement in body.steps:
            self._statement(statement, env)

    def _statement(self, statement: Statement, env: dict[str, QuasiAffine]) -> None:
        match statement:
            case Step():
                self._step(statement, env)
            case Mark():
                pass
            case Define():
                env[statement.name] = self._of(statement.value, env, statement.span)
            case For():
                self._loop(statement, env)
            case If():
                self._flat(statement.condition, env, statement.span, "a condition")
                self._body(statement.then, env)
                self._body(statement.otherwise, env)
            case Body():
                self._body(statement, env)

    def _step(self, step: Step, env: dict[str, QuasiAffine]) -> None:
        span = step.span or step.op.span
        what = " ".join(step.op.text.split())
        stores = isinstance(step.op, ops.Store) and step.op.sem == "weak" and not step.op.volatile
        for expr in step.loose if not stores else ():
            self._flat(expr, env, span, f"an operand of '{what}'")
        if stores:
            self._stored(step, env, span)
        innermost = True
        for name, expr in expressions(step.op):
            if stores and name == "srcs":
                continue
            first, innermost = innermost, innermost and name != "coords"
            even = self._of(expr, env, span)
            self._steady(even, span)
            if not even.grows:
                self.periods.add(even.period)
                continue
            if isinstance(step.op, ops.TensorCopy) and step.op.kind == "load" and name == "coords":
                self._coordinate(even, first)
                continue
            slope = even.slope + even.along
            space = {self.objects[o].space for o in even.objects if o in self.objects}
            writes = (type(step.op), name) in WRITTEN and (stores or getattr(step.op, "reduce", "") is None)
            reads = (type(step.op), name) in READ
            if not (reads or writes) or len(even.objects) != 1 or space != {"global"} or slope < 0:
                raise Aperiodic(f"the {name} of '{what}', which grows with the rounds", span)
            self.written |= even.objects if writes else set()
            self.growing.append((next(iter(even.objects)), even.period, slope))

    def _stored(self, step: Step, env: Mapping[str, QuasiAffine], span: Span | None) -> None:
        """A plain store: after how many rounds what it writes repeats. Mostly nothing depends on it."""
        assert isinstance(step.op, ops.Store)
        objects = tuple(self._of(step.op.address, env, span).objects)
        where = objects[0] if len(objects) == 1 else ""
        for expr in (*step.loose, *step.op.srcs):
            every = None
            with suppress(Aperiodic):
                even = self._of(expr, env, span)
                self._steady(even, span)
                every = None if even.grows else even.period
            self.values.append((where, every))

    def _coordinate(self, even: QuasiAffine, innermost: bool) -> None:
        """A coordinate of a load by a tensor map: that of the innermost dimension has to be a multiple of 16 bytes."""
        self.periods.add(even.period * (16 // gcd(16, even.slope + even.along) if innermost else 1))
        self.coordinates = True

    def _flat(self, expr: Expr, env: Mapping[str, QuasiAffine], span: Span | None, what: str) -> None:
        even = self._of(expr, env, span)
        self._steady(even, span)
        if even.grows:
            raise Aperiodic(f"{what}, which grows with the rounds", span)
        self.periods.add(even.period)

    def _steady(self, even: QuasiAffine, span: Span | None) -> None:
        """Raises ``Aperiodic`` for what depends on the number of rounds elsewhere than behind the loop."""
        if even.counts and not self.paths.every:
            raise Aperiodic(f"{self.free} before the loop or in it", span)
        self.counted = self.counted or even.counts

    # --- expressions ------------------------------------------------------------------------------------------

    def _of(self, expr: Expr, env: Mapping[str, QuasiAffine], span: Span | None) -> QuasiAffine:
        even = self._read(expr, env, span)
        if even.period > MAX_PERIOD:
            raise Aperiodic(f"an expression that repeats after {even.period} rounds only", span)
        return even

    def _read(self, expr: Expr, env: Mapping[str, QuasiAffine], span: Span | None) -> QuasiAffine:
        match expr:
            case Const(value):
                return constant(value)
            case Reg() | Lanes():
                return UNKNOWN
            case Special():
                return bounded_constant(0, None)
            case Name():
                return self._name(expr, env, span)
            case Unary(op, operand):
                return self._unary(op, self._of(operand, env, span), span)
            case Binary(op, left, right):
                return self._binary(op, self._of(left, env, span), self._of(right, env, span), span)

    def _name(self, name: Name, env: Mapping[str, QuasiAffine], span: Span | None) -> QuasiAffine:
        if name.name in env:
            return env[name.name]
        item = self.objects.get(name.name)
        if item is None:
            raise Aperiodic(f"{name.name}, which is not known here", span)
        if name.rank is not None:
            self._flat(name.rank, env, span, "the rank of a CTA")
        found = replace(bounded_constant(0, None), objects=frozenset((name.name,)))
        for number, index in enumerate(name.indices):
            stride = item.elem_size * prod(item.dims[number + 1 :])
            found = total(found, multiply(self._of(index, env, span), stride))
        return found

    def _unary(self, op: str, a: QuasiAffine, span: Span | None) -> QuasiAffine:
        if op == "+":
            return a
        if op == "-":
            return multiply(a, -1)
        if not a.grows:
            known = TRUTH if op == "!" else UNKNOWN
            return replace(known, period=a.period, counts=a.counts, objects=a.objects)
        raise Aperiodic(f"'{op}' of what grows with the rounds", span)

    def _binary(self, op: str, a: QuasiAffine, b: QuasiAffine, span: Span | None) -> QuasiAffine:
        match op:
            case "+":
                return total(a, b)
            case "-":
                return difference(a, b)
            case "*" if a.value is not None or b.value is not None:
                one, other = (a, b) if b.value is not None else (b, a)
                return multiply(one, other.value or 0)
            case "<<" if b.value is not None and 0 <= b.value < 64:
                return multiply(a, 1 << b.value)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                return self._compared(op, difference(a, b), span)
            case "/" | "%" if b.value is not None and b.value > 0 and self._natural(a):
                return quotient(a, b.value) if op == "/" else remainder(a, b.value)
            case ">>" if b.value is not None and 0 <= b.value < 64 and self._natural(a):
                return quotient(a, 1 << b.value)
            case "&" if b.value is not None and b.value >= 0 and a.grows and self._natural(a):
                return remainder(a, 1 << b.value.bit_length())
        if not a.grows and not b.grows:
            known = UNKNOWN
            if op in ("&&", "||"):
                known = TRUTH
            elif op in ("/", "%", ">>", "&") and self._natural(a) and self._natural(b):
                known = bounded_constant(0, None)
            return replace(
                known, period=lcm(a.period, b.period), counts=a.counts or b.counts, objects=a.objects | b.objects
            )
        raise Aperiodic(f"'{op}' of what grows with the rounds", span)

    # --- where things turn ------------------------------------------------------------------------------------

    def _compared(self, op: str, a: QuasiAffine, span: Span | None) -> QuasiAffine:
        """Whether a difference is above 0, below it, or neither."""
        if not a.grows:
            return replace(TRUTH, period=a.period, counts=a.counts)
        if a.low is None or a.high is None or not self._turns(a, a.low, a.high):
            raise Aperiodic(f"'{op}' of what grows with the rounds", span)
        turn = max(self.least, *((self.cuts.ahead, self.cuts.behind) if self.cuts is not None else (0,)))
        if turn > MAX_CUT:
            raise Aperiodic(f"'{op}' of what grows with the rounds, and turns late", span, turn)
        return TRUTH

    def _turns(self, a: QuasiAffine, low: Fraction, high: Fraction) -> bool:
        """Keeps what can be 0 out of the rounds that are alike; whether that can be done."""
        rate, along, cuts = a.rate, a.rate_along, self.cuts
        if not rate:  # above or below for all large numbers
            self.least = max(self.least, floor(max(-low / along, -high / along)) + 1)
            return True
        if cuts is None:
            return False
        ends = sorted((-low / rate, -high / rate))
        if not along:
            return self._spare(cuts, ends)
        if rate + along:
            return False
        # The end of the loop is ``beyond`` behind N, and the turn as far behind N as ``ends`` say.
        cuts.behind = max(cuts.behind, floor(self.beyond - ends[0]))
        return True

    def _spare(self, cuts: Cuts, ends: list[Fraction]) -> bool:
        """Leaves the rounds from one number to another out: with those before them, or with those behind them."""
        if cuts.count is None or ends[1] < cuts.low + cuts.count // 2:
            cuts.ahead = max(cuts.ahead, floor(ends[1]) + 1 - cuts.low)
            return True
        if ends[0] <= cuts.low + cuts.count // 2:
            return False
        cuts.behind = max(cuts.behind, cuts.low + cuts.count - ceil(ends[0]))
        return True

    def _natural(self, a: QuasiAffine) -> bool:
        """Whether a value is never negative, so that quotients and remainders are those of arithmetic; the first or
        last rounds are left out for that.
        """
        if a.natural or a.low is None:
            return a.natural
        rate, along, cuts = a.rate, a.rate_along, self.cuts
        first = cuts.low if cuts is not None else 0
        if rate >= 0 and along >= 0 and a.low + rate * first >= 0:
            return True
        if not rate and along > 0:
            self.least = max(self.least, ceil(-a.low / along))
            return True
        if cuts is None or along or not rate:
            return False
        turn = -a.low / rate
        if rate > 0:
            ahead = ceil(turn) - cuts.low
            cuts.ahead = max(cuts.ahead, ahead)
            return ahead <= MAX_CUT
        if cuts.count is None:
            return False
        behind = cuts.low + cuts.count - 1 - floor(turn)
        cuts.behind = max(cuts.behind, behind)
        return behind <= MAX_CUT


def _says_something(body: Body) -> bool:
    return any(
        (isinstance(s, Body) and _says_something(s))
        or (isinstance(s, For) and _says_something(s.body))
        or (isinstance(s, If) and (_says_something(s.then) or _says_something(s.otherwise)))
        or isinstance(s, Step)
        for s in body.steps
    )
