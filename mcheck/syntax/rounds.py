"""Whether the loops over a constant that is any number repeat: read off the text of a file, not off its unrolled code.

Every expression of a role is a function of the round. One that is *even* with a period P and a slope c fulfils
e(k + P) = e(k) + c for every round k from 0 on: constants, loop variables, sums of these, their multiples, quotients
and remainders by constants. Code repeats where every operand is even with slope 0, but for the addresses that are read,
or plainly written, in global objects, and the values of plain stores. What is not of this kind (a comparison of the
round with a number, a product of rounds) is refused by name, so whoever reads the answer knows what to change.

The constant itself may stand in bounds of loops that are nested in nothing, in sizes of global objects, and behind the
loop. What holds of one of its values then holds of all: the text does not know it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd, lcm, prod

from mcheck.errors import Span
from mcheck.program import ops
from mcheck.program.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary
from mcheck.program.memory import MemObject
from mcheck.program.resolve import expressions
from mcheck.program.rounds import Aperiodic, Rounds
from mcheck.syntax.binding import Role
from mcheck.syntax.statements import Body, Define, For, If, Mark, Statement, Step

ALIGNED = 32
"""What addresses go on by in a period is a multiple of this, the largest alignment that an instruction asks for."""
MAX_PERIOD = 4096

READ: tuple[tuple[type[ops.Op], str], ...] = (
    (ops.Load, "address"), (ops.BulkCopy, "src"), (ops.CpAsync, "src"), (ops.Prefetch, "src"),
)  # fmt: skip
"""Operands that are addresses which are only read."""
WRITTEN: tuple[tuple[type[ops.Op], str], ...] = ((ops.BulkCopy, "dst"), (ops.Store, "address"))
"""Operands that are addresses which are only written, but by reductions and by what is no plain store."""


@dataclass(frozen=True, slots=True)
class Even:
    """A function of the round: e(k + period) = e(k) + slope. ``value`` is that of a constant, ``least`` a number that
    it never falls below, ``objects`` are the objects into which it points.
    """

    period: int = 1
    slope: int = 0
    value: int | None = None
    least: int | None = None
    objects: frozenset[str] = frozenset()


UNKNOWN = Even()
"""A value that is the same in all rounds."""


def even_rounds(roles: Mapping[str, Role], objects: Mapping[str, MemObject], free: str) -> Rounds:
    """How the roles repeat over the constant ``free``, which stands in them by its name; raises ``Aperiodic``."""
    reader = _Reader(objects, free)
    bodies = {name: reader.role(role.body) for name, role in roles.items()}
    if not any(bodies.values()):
        raise Aperiodic(f"no loop runs to {free}")
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
    return Rounds(period, growing, bodies, reader.stored, written)


class _Reader:
    """Reads the roles; collects the periods that it comes across, and what addresses go on by."""

    def __init__(self, objects: Mapping[str, MemObject], free: str) -> None:
        self.objects = objects
        self.free = free
        self.periods: set[int] = set()
        self.growing: list[tuple[str, int, int]] = []
        self.stored = False
        self.written: set[str] = set()

    def role(self, body: Body) -> frozenset[Span]:
        """Where the statements of the role's loop over the constant stand; empty if it has none."""
        found: set[Span] = set()
        self._outermost(body, {}, found)
        return frozenset(found)

    def _outermost(self, body: Body, env: dict[str, Even], found: set[Span]) -> None:
        """Statements that are in no loop: before the loop, which knows nothing of the constant, and behind it."""
        env = dict(env)
        for statement in body.steps:
            if isinstance(statement, Body):
                self._outermost(statement, env, found)
            elif isinstance(statement, For):
                low, high = (self._of(e, {**env, self.free: Even(1, 1, least=0)}, statement.span)
                             for e in (statement.low, statement.high))  # fmt: skip
                if not low.slope and high.slope:
                    self._long(statement, low, high, env, found)
                else:
                    self._loop(statement, env | ({self.free: Even(1, 1, least=0)} if found else {}))
            else:
                self._statement(statement, env)
            if found:
                env[self.free] = Even(1, 1, least=0)

    def _long(self, loop: For, low: Even, high: Even, env: dict[str, Even], found: set[Span]) -> None:
        if found:
            raise Aperiodic(f"a second loop to {self.free}", loop.span)
        if low.value is None or low.value < 0 or (high.period, high.slope) != (1, 1):
            raise Aperiodic(f"the bounds of a loop to {self.free}: they are to be a number and {self.free}", loop.span)
        inner = {**env, loop.variable: Even(1, 1, least=low.value)}
        for statement in loop.body.steps:
            self._statement(statement, inner)
        found |= _spans(loop.body)
        if not found:
            raise Aperiodic("a loop without a statement", loop.span)

    def _loop(self, loop: For, env: dict[str, Even]) -> None:
        """A loop of as many rounds whatever the round around it, or the number, is."""
        low, high = self._of(loop.low, env, loop.span), self._of(loop.high, env, loop.span)
        self.periods |= {low.period, high.period}
        if self._difference(high, low).slope:
            raise Aperiodic("how often a loop runs", loop.span)
        self._body(loop.body, {**env, loop.variable: replace(low, value=None)})

    def _body(self, body: Body, env: dict[str, Even]) -> None:
        env = dict(env)
        for statement in body.steps:
            self._statement(statement, env)

    def _statement(self, statement: Statement, env: dict[str, Even]) -> None:
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

    def _step(self, step: Step, env: dict[str, Even]) -> None:
        span = step.span or step.op.span
        what = " ".join(step.op.text.split())
        stores = isinstance(step.op, ops.Store) and step.op.sem == "weak" and not step.op.volatile
        for expr in step.loose if not stores else ():
            self._flat(expr, env, span, f"an operand of '{what}'")
        for name, expr in expressions(step.op):
            if stores and name == "srcs":
                self.stored = True  # whatever they are: see who asks
                continue
            even = self._of(expr, env, span)
            if not even.slope:
                self.periods.add(even.period)
                continue
            space = {self.objects[o].space for o in even.objects if o in self.objects}
            writes = (type(step.op), name) in WRITTEN and (stores or getattr(step.op, "reduce", "") is None)
            reads = (type(step.op), name) in READ
            if not (reads or writes) or len(even.objects) != 1 or space != {"global"} or even.slope < 0:
                raise Aperiodic(f"the {name} of '{what}', which grows with the rounds", span)
            self.written |= even.objects if writes else set()
            self.growing.append((next(iter(even.objects)), even.period, even.slope))

    def _flat(self, expr: Expr, env: Mapping[str, Even], span: Span | None, what: str) -> None:
        even = self._of(expr, env, span)
        if even.slope:
            raise Aperiodic(f"{what}, which grows with the rounds", span)
        self.periods.add(even.period)

    # --- expressions ------------------------------------------------------------------------------------------

    def _of(self, expr: Expr, env: Mapping[str, Even], span: Span | None) -> Even:
        even = self._read(expr, env, span)
        if even.period > MAX_PERIOD:
            raise Aperiodic(f"an expression that repeats after {even.period} rounds only", span)
        return even

    def _read(self, expr: Expr, env: Mapping[str, Even], span: Span | None) -> Even:
        match expr:
            case Const(value):
                return Even(value=value, least=value)
            case Reg() | Lanes():
                return UNKNOWN
            case Special():
                return Even(least=0)
            case Name():
                return self._name(expr, env, span)
            case Unary(op, operand):
                return self._unary(op, self._of(operand, env, span), span)
            case Binary(op, left, right):
                return self._binary(op, self._of(left, env, span), self._of(right, env, span), span)

    def _name(self, name: Name, env: Mapping[str, Even], span: Span | None) -> Even:
        if name.name in env:
            return env[name.name]
        item = self.objects.get(name.name)
        if item is None:
            raise Aperiodic(f"{name.name} before the loop or in it, or a loop to it inside another statement", span)
        if name.rank is not None:
            self._flat(name.rank, env, span, "the rank of a CTA")
        found = Even(least=0, objects=frozenset((name.name,)))
        for number, index in enumerate(name.indices):
            stride = item.elem_size * prod(item.dims[number + 1 :])
            found = self._sum(found, self._multiple(self._of(index, env, span), stride))
        return found

    def _unary(self, op: str, a: Even, span: Span | None) -> Even:
        if not a.slope:
            return Even(a.period, objects=a.objects)
        if op == "+":
            return a
        if op == "-":
            return self._multiple(a, -1)
        raise Aperiodic(f"'{op}' of what grows with the rounds", span)

    def _binary(self, op: str, a: Even, b: Even, span: Span | None) -> Even:
        match op:
            case "+":
                return self._sum(a, b)
            case "-":
                return self._difference(a, b)
            case "*" if a.value is not None or b.value is not None:
                one, other = (a, b) if b.value is not None else (b, a)
                return self._multiple(one, other.value or 0)
            case "<<" if b.value is not None and 0 <= b.value < 64:
                return self._multiple(a, 1 << b.value)
            case "<" | "<=" | ">" | ">=" | "==" | "!=" if not self._difference(a, b).slope:
                return Even(self._difference(a, b).period, least=0)
        if not a.slope and not b.slope:
            natural = op in ("/", "%", ">>", "&") and _natural(a) and _natural(b)
            return Even(lcm(a.period, b.period), least=0 if natural else None, objects=a.objects | b.objects)
        if op in ("/", "%", ">>", "&") and _natural(a) and b.value is not None:
            if op in ("/", "%") and b.value > 0:
                return self._divided(a, b.value, op)
            if op == ">>" and 0 <= b.value < 64:
                return self._divided(a, 1 << b.value, "/")
            if op == "&" and b.value >= 0:
                return self._divided(a, 1 << b.value.bit_length(), "%")
        raise Aperiodic(f"'{op}' of what grows with the rounds", span)

    def _divided(self, a: Even, by: int, op: str) -> Even:
        """The quotient or the remainder of what is never negative."""
        times = by // gcd(a.slope, by)
        slope = a.slope * times // by if op == "/" else 0
        return Even(a.period * times, slope, least=0, objects=a.objects)

    def _sum(self, a: Even, b: Even) -> Even:
        period = lcm(a.period, b.period)
        return Even(
            period, a.slope * (period // a.period) + b.slope * (period // b.period),
            None if a.value is None or b.value is None else a.value + b.value,
            None if a.least is None or b.least is None else a.least + b.least, a.objects | b.objects,
        )  # fmt: skip

    def _difference(self, a: Even, b: Even) -> Even:
        found = self._sum(a, self._multiple(b, -1))
        return replace(found, least=a.least - b.value) if a.least is not None and b.value is not None else found

    def _multiple(self, a: Even, by: int) -> Even:
        value = None if a.value is None else a.value * by
        least = a.least * by if a.least is not None and by >= 0 else value
        return Even(a.period, a.slope * by, value, least, a.objects)


def _natural(a: Even) -> bool:
    """Whether a value is never negative, so that quotients and remainders are those of arithmetic."""
    return a.least is not None and a.least >= 0


def _spans(body: Body) -> set[Span]:
    found: set[Span] = set()
    for statement in body.steps:
        match statement:
            case Step():
                span = statement.span or statement.op.span
                found |= {span} if span is not None else set()
            case Mark():
                found.add(statement.span)
            case If():
                found |= {statement.span} | _spans(statement.then) | _spans(statement.otherwise)
            case For():
                found |= _spans(statement.body)
            case Body():
                found |= _spans(statement)
    return found
