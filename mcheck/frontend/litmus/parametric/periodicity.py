"""Detection of periodic loops, on the syntax tree instead of the unrolled code.

Every expression of a role is a function of the loop iteration. A quasi-affine one
(``parametric.quasi_affine``) with period P and slope c satisfies e(k + P) = e(k) + c for every iteration k:
constants, loop variables, sums of these, their multiples, quotients and remainders by constants. Code is periodic if
every operand is quasi-affine with slope 0, except for addresses in global objects that are read or plainly written, the
coordinates of loads by a tensor map, and the values of plain stores, if nothing depends on those. Any other expression
(a product of iterations) is named in the reason, so that the reader of the answer knows what to change. Where only the
numbers before a late change are asked for, it may still have one value up to there (``parametric.first_rounds``).

A comparison of a growing value with a number, or with the iteration count, changes its result once: in one of the
first or of the last iterations. Those are not part of the period (``LongLoop``): the first belong to what comes before
it, the last to what comes after it, at the same distance from the end whatever the count is.

The iteration count is either the parameter (a constant that is ``any``), which may occur in bounds of outermost loops,
in comparisons, in sizes of global objects, and after the loop; what holds for one of its values then holds for all, for
the text does not depend on it otherwise. Or it is a large literal.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from fractions import Fraction
from math import ceil, floor, gcd, lcm, prod

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.parametric.first_rounds import ITERATION, Meaning, Names, find_first_change, in_iterations
from mcheck.frontend.litmus.parametric.quasi_affine import (
    TRUTH,
    UNKNOWN,
    QuasiAffine,
    add,
    bounded_constant,
    constant,
    divide,
    multiply,
    remainder,
    subtract,
)
from mcheck.frontend.litmus.statements import Body, Define, For, If, Mark, Statement, Step
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary
from mcheck.ir.loop_unrolling import Aperiodic, LongLoop, LoopPeriodicity
from mcheck.ir.memory import MemObject
from mcheck.ir.resolve import expressions

ALIGNED = 32
"""Addresses advance by a multiple of this in a period: the largest alignment that an instruction requires."""
MAX_PERIOD = 4096
MAX_CUT = 256
"""The maximum number of irregular iterations at the beginning or the end of a loop."""
FEW = 16
"""The number of them up to which a comparison that changes its result is not late."""
LARGE = 64
"""The divisor from which on remainders are those of the first iterations, if these are asked for."""
LONG = 96
"""The iteration count from which a loop with literal bounds is tested for periodicity."""

ROUND = QuasiAffine(1, 1, low=Fraction(0), high=Fraction(0), non_negative=True)
NUMBER = QuasiAffine(1, 0, 1, low=Fraction(0), high=Fraction(0), non_negative=True, depends_on_count=True)
"""The iteration count."""

READ: tuple[tuple[type[ops.Op], str], ...] = (
    (ops.Load, "address"), (ops.BulkCopy, "src"), (ops.CpAsync, "src"), (ops.Prefetch, "src"),
)  # fmt: skip
"""Address operands through which an operation only reads."""
WRITTEN: tuple[tuple[type[ops.Op], str], ...] = ((ops.BulkCopy, "dst"), (ops.Store, "address"))
"""Address operands through which an operation only writes, unless it is a reduction or not a plain store."""


def find_periodic_loops(
    roles: Mapping[str, Role], objects: Mapping[str, MemObject], parameter: str | None, *, early: bool = False
) -> LoopPeriodicity:
    """The periodicity of the roles in ``parameter``, which is a name in them, or without one in loops of many
    iterations; raises ``Aperiodic``. ``early``: up to the largest number for which no comparison changes its result
    after the first ``FEW`` iterations.
    """
    reader = _Reader(objects, parameter, early=early)
    for role in roles.values():
        reader.role(role.body)
    if not reader.loops:
        raise Aperiodic(f"no loop runs to {parameter}" if parameter is not None else "no loop has many iterations")
    period = lcm(1, *reader.periods)
    growing: dict[str, int] = {}
    written: dict[str, int] = {}
    for _, every, slope in reader.growing:
        period = lcm(period, every * (ALIGNED // gcd(ALIGNED, abs(slope))))
    if period > MAX_PERIOD:
        raise Aperiodic(f"the iterations repeat only after {period}")
    for name, every, slope in reader.growing:
        growing[name] = max(growing.get(name, 0), slope * (period // every))
    for name in reader.written:
        if len({slope * (period // every) for other, every, slope in reader.growing if other == name}) > 1:
            raise Aperiodic(f"addresses in {name}, which grow by different strides")
        written[name] = growing[name]
    values: dict[str, int | None] = {}
    for name, repeats in reader.values:
        others = values.get(name, 1)
        values[name] = None if repeats is None or others is None else lcm(repeats, others)
    return LoopPeriodicity(
        period, growing, reader.loops, values, written, reader.coordinates, reader.counted, reader.least, reader.until
    )


@dataclass(slots=True)
class _Paths:
    """Whether some, or all, control-flow paths so far contain a long loop."""

    some: bool = False
    every: bool = False


@dataclass(slots=True)
class _Reader:
    """Analyses the roles: collects the periods of expressions and the strides of addresses."""

    objects: Mapping[str, MemObject]
    parameter: str | None
    early: bool = False
    periods: set[int] = field(default_factory=set)
    growing: list[tuple[str, int, int]] = field(default_factory=list)
    values: list[tuple[str, int | None]] = field(default_factory=list)
    """For plain stores: the object, if known, and the period of the written value, ``None`` if it grows.
    """
    coordinates: bool = False
    counted: bool = False
    written: set[str] = field(default_factory=set)
    loops: dict[Span, LongLoop] = field(default_factory=dict)
    least: int = 0
    until: int | None = None
    """The largest iteration count before a comparison changes its result, if only those are asked for."""
    cuts: LongLoop | None = None
    """The irregular iterations of the loop that is being analysed."""
    beyond: int = 0
    """How far the upper bound of that loop exceeds the parameter."""
    paths: _Paths = field(default_factory=_Paths)

    def role(self, body: Body) -> None:
        """Analyse a role, and find its long loops."""
        self.paths = _Paths()
        self._outermost(body, {} if self.parameter is None else {self.parameter: Meaning(NUMBER)})

    def _outermost(self, body: Body, env: Names) -> None:
        """Analyse statements outside of all loops."""
        env = dict(env)
        for statement in body.steps:
            match statement:
                case Body():
                    self._outermost(statement, env)
                case If():
                    self._choice(statement, env)
                case For():
                    low, high = (self._evaluate(e, env, statement.span) for e in (statement.low, statement.high))
                    if self._is_long(low, high):
                        self._analyse_long_loop(statement, low, high, env)
                    else:
                        self._loop(statement, env)
                case _:
                    self._statement(statement, env)

    def _choice(self, choice: If, env: Names) -> None:
        self._require_periodic(choice.condition, env, choice.span, "a condition")
        before = self.paths
        after = []
        for body in (choice.then, choice.otherwise):
            self.paths = replace(before)
            self._outermost(body, env)
            after.append(self.paths)
        self.paths = _Paths(any(p.some for p in after), all(p.every for p in after))

    def _is_long(self, low: QuasiAffine, high: QuasiAffine) -> bool:
        if self.parameter is not None:
            return not low.growth_with_count and bool(high.growth_with_count)
        return low.value is not None and high.value is not None and high.value - low.value >= LONG

    def _analyse_long_loop(self, loop: For, low: QuasiAffine, high: QuasiAffine, env: Names) -> None:
        number = self.parameter or "a large number"
        if self.paths.some:
            raise Aperiodic(f"a second loop to {number}", loop.span)
        offset = high.low if (high.period, high.growth_with_count, high.low) == (1, 1, high.high) else None
        if low.value is None or low.value < 0 or (self.parameter is not None and offset is None):
            raise Aperiodic(f"the bounds of a loop to {number}, which must be a number and {number}", loop.span)
        count = None if self.parameter is not None else (high.value or 0) - low.value
        self.cuts, self.beyond = LongLoop(low.value, count=count), int(offset or 0)
        inner = {**env, loop.variable: Meaning(ROUND, ITERATION)}
        for statement in loop.body.steps:
            self._statement(statement, inner)
        if not _has_operation(loop.body):
            raise Aperiodic("a loop without a statement", loop.span)
        self.least = max(self.least, low.value + self.cuts.ahead + self.cuts.behind - self.beyond)
        self.loops[loop.span], self.cuts = self.cuts, None
        self.paths = _Paths(some=True, every=True)

    def _loop(self, loop: For, env: Names) -> None:
        """Analyse a loop whose iteration count does not depend on the enclosing iteration or on the parameter."""
        low, high = self._evaluate(loop.low, env, loop.span), self._evaluate(loop.high, env, loop.span)
        self._require_independent(low, loop.span)
        self._require_independent(high, loop.span)
        self.periods |= {low.period, high.period}
        if subtract(high, low).grows:
            raise Aperiodic("the iteration count of a loop", loop.span)
        last = None if high.high is None else high.high - 1
        self._body(loop.body, {**env, loop.variable: Meaning(replace(low, value=None, high=last))})

    def _body(self, body: Body, env: Names) -> None:
        env = dict(env)
        for statement in body.steps:
            self._statement(statement, env)

    def _statement(self, statement: Statement, env: Names) -> None:
        match statement:
            case Step():
                self._step(statement, env)
            case Mark():
                pass
            case Define():
                env[statement.name] = self._define(statement, env)
            case For():
                self._loop(statement, env)
            case If():
                self._require_periodic(statement.condition, env, statement.span, "a condition")
                self._body(statement.then, env)
                self._body(statement.otherwise, env)
            case Body():
                self._body(statement, env)

    def _define(self, define: Define, env: Names) -> Meaning:
        term = in_iterations(define.value, env) if self.early else None
        try:
            return Meaning(self._evaluate(define.value, env, define.span), term)
        except Aperiodic as error:
            if term is None:
                raise
            return Meaning(error, term)

    def _step(self, step: Step, env: Names) -> None:
        span = step.span or step.op.span
        what = " ".join(step.op.text.split())
        stores = isinstance(step.op, ops.Store) and step.op.sem == "weak" and not step.op.volatile
        for expr in step.foldable if not stores else ():
            self._require_periodic(expr, env, span, f"an operand of '{what}'")
        if stores:
            self._stored(step, env, span)
        innermost = True
        for name, expr in expressions(step.op):
            if stores and name == "srcs":
                continue
            first, innermost = innermost, innermost and name != "coords"
            even = self._evaluate(expr, env, span)
            self._require_independent(even, span)
            if not even.grows:
                self.periods.add(even.period)
                continue
            if isinstance(step.op, ops.TensorCopy) and step.op.kind == "load" and name == "coords":
                self._coordinate(even, first)
                continue
            slope = even.slope + even.growth_with_count
            space = {self.objects[o].space for o in even.objects if o in self.objects}
            writes = (type(step.op), name) in WRITTEN and (stores or getattr(step.op, "reduce", "") is None)
            reads = (type(step.op), name) in READ
            if not (reads or writes) or len(even.objects) != 1 or space != {"global"} or slope < 0:
                raise Aperiodic(f"the {name} of '{what}', which grows with the iteration", span)
            self.written |= even.objects if writes else set()
            self.growing.append((next(iter(even.objects)), even.period, slope))

    def _stored(self, step: Step, env: Names, span: Span | None) -> None:
        """Analyse the period of the value of a plain store. Mostly nothing depends on it."""
        assert isinstance(step.op, ops.Store)
        objects = tuple(self._evaluate(step.op.address, env, span).objects)
        where = objects[0] if len(objects) == 1 else ""
        for expr in (*step.foldable, *step.op.srcs):
            every = None
            with suppress(Aperiodic):
                even = self._evaluate(expr, env, span)
                self._require_independent(even, span)
                every = None if even.grows else even.period
            self.values.append((where, every))

    def _coordinate(self, even: QuasiAffine, innermost: bool) -> None:
        """Analyse a coordinate of a load by a tensor map; the innermost one must be a multiple of 16 bytes."""
        self.periods.add(even.period * (16 // gcd(16, even.slope + even.growth_with_count) if innermost else 1))
        self.coordinates = True

    def _require_periodic(self, expr: Expr, env: Names, span: Span | None, what: str) -> None:
        even = self._evaluate(expr, env, span)
        self._require_independent(even, span)
        if even.grows:
            raise Aperiodic(f"{what}, which grows with the iteration", span)
        self.periods.add(even.period)

    def _require_independent(self, even: QuasiAffine, span: Span | None) -> None:
        """Raise ``Aperiodic`` for a value that depends on the iteration count other than after the loop."""
        if even.depends_on_count and not self.paths.every:
            raise Aperiodic(f"{self.parameter} before the loop or in it", span)
        self.counted = self.counted or even.depends_on_count

    # --- expressions ------------------------------------------------------------------------------------------

    def _evaluate(self, expr: Expr, env: Names, span: Span | None) -> QuasiAffine:
        even = self._read(expr, env, span)
        if even.period > MAX_PERIOD:
            raise Aperiodic(f"an expression that repeats only after {even.period} iterations", span)
        return even

    def _read(self, expr: Expr, env: Names, span: Span | None) -> QuasiAffine:
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
                return self._unary(op, self._evaluate(operand, env, span), span)
            case Binary(op, left, right):
                try:
                    return self._binary(op, self._evaluate(left, env, span), self._evaluate(right, env, span), span)
                except Aperiodic:
                    known = self._first_value(expr, env) if self.early else None
                    if known is None:
                        raise
                    return constant(known)

    def _name(self, name: Name, env: Names, span: Span | None) -> QuasiAffine:
        if name.name in env:
            known = env[name.name].function
            if isinstance(known, Aperiodic):
                raise known
            return known
        item = self.objects.get(name.name)
        if item is None:
            raise Aperiodic(f"{name.name}, which is not declared", span)
        if name.rank is not None:
            self._require_periodic(name.rank, env, span, "the rank of a CTA")
        found = replace(bounded_constant(0, None), objects=frozenset((name.name,)))
        for number, index in enumerate(name.indices):
            stride = item.elem_size * prod(item.dims[number + 1 :])
            found = add(found, multiply(self._evaluate(index, env, span), stride))
        return found

    def _unary(self, op: str, a: QuasiAffine, span: Span | None) -> QuasiAffine:
        if op == "+":
            return a
        if op == "-":
            return multiply(a, -1)
        if not a.grows:
            known = TRUTH if op == "!" else UNKNOWN
            return replace(known, period=a.period, depends_on_count=a.depends_on_count, objects=a.objects)
        raise Aperiodic(f"'{op}' of a value that grows with the iteration", span)

    def _binary(self, op: str, a: QuasiAffine, b: QuasiAffine, span: Span | None) -> QuasiAffine:
        if self.early and op in ("%", "&") and self._is_early_dividend(op, a, b):
            return a
        match op:
            case "+":
                return add(a, b)
            case "-":
                return subtract(a, b)
            case "*" if a.value is not None or b.value is not None:
                one, other = (a, b) if b.value is not None else (b, a)
                return multiply(one, other.value or 0)
            case "<<" if b.value is not None and 0 <= b.value < 64:
                return multiply(a, 1 << b.value)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                return self._compared(op, subtract(a, b), span)
            case "/" | "%" if b.value is not None and b.value > 0 and self._ensure_non_negative(a):
                return divide(a, b.value) if op == "/" else remainder(a, b.value)
            case ">>" if b.value is not None and 0 <= b.value < 64 and self._ensure_non_negative(a):
                return divide(a, 1 << b.value)
            case "&" if b.value is not None and b.value >= 0 and a.grows and self._ensure_non_negative(a):
                return remainder(a, 1 << b.value.bit_length())
        if not a.grows and not b.grows:
            known = UNKNOWN
            if op in ("&&", "||"):
                known = TRUTH
            elif op in ("/", "%", ">>", "&") and self._ensure_non_negative(a) and self._ensure_non_negative(b):
                known = bounded_constant(0, None)
            return replace(
                known,
                period=lcm(a.period, b.period),
                depends_on_count=a.depends_on_count or b.depends_on_count,
                objects=a.objects | b.objects,
            )
        raise Aperiodic(f"'{op}' of a value that grows with the iteration", span)

    def _is_early_dividend(self, op: str, a: QuasiAffine, b: QuasiAffine) -> bool:
        """Whether a growing value is its own remainder by a large number, up to some iteration count."""
        if b.value is None or not a.grows:
            return False
        by = b.value + (op == "&")
        if by < LARGE or (op == "&" and by & (by - 1)) or not self._ensure_non_negative(a):
            return False
        rest = subtract(a, constant(by))
        return (
            rest.low is not None and rest.high is not None and self._stop_before_sign_change(rest, rest.low, rest.high)
        )

    # --- comparisons that change their result once ------------------------------------------------------------

    def _compared(self, op: str, a: QuasiAffine, span: Span | None) -> QuasiAffine:
        """Compare a difference with 0."""
        if not a.grows:
            return replace(TRUTH, period=a.period, depends_on_count=a.depends_on_count)
        if self.early and a.low is not None and a.high is not None and self._stop_before_sign_change(a, a.low, a.high):
            return TRUTH
        if a.low is None or a.high is None or not self._exclude_sign_change(a, a.low, a.high):
            raise Aperiodic(f"'{op}' of a value that grows with the iteration", span)
        turn = max(self.least, *((self.cuts.ahead, self.cuts.behind) if self.cuts is not None else (0,)))
        if turn > MAX_CUT:
            raise Aperiodic(
                f"'{op}' of a value that grows with the iteration, with a result that changes late", span, turn
            )
        return TRUTH

    def _stop_before_sign_change(self, a: QuasiAffine, low: Fraction, high: Fraction) -> bool:
        """Limit the iteration count to those for which a value is not 0, and has one sign, in any iteration; returns
        whether these are more than a few.
        """
        rate, along = a.rate, a.rate_with_count
        if rate < 0 or along < 0:  # the value with the other sign
            rate, along, low, high = -rate, -along, -high, -low
        first, beyond = (self.cuts.low, self.beyond - 1) if self.cuts is not None else (0, 0)
        if self.parameter is None or rate < 0 or along < 0 or (rate and self.cuts is None) or rate * first + high >= 0:
            return False
        # It grows, so it is largest in the last iteration: rate * (N + beyond) + along * N + high has to be negative.
        return self._stop_at(ceil((-high - rate * beyond) / (rate + along)) - 1)

    def _stop_at(self, until: int) -> bool:
        """Limit the iteration count; returns whether this leaves more than a few."""
        if until <= (self.cuts.low if self.cuts is not None else 0) + FEW:
            return False
        self.until = until if self.until is None else min(until, self.until)
        return True

    def _first_value(self, expr: Expr, env: Names) -> int | None:
        """The value of an expression in all iterations up to a late one, which limits the iteration count."""
        term = in_iterations(expr, env) if self.cuts is not None else None
        found = None if term is None or self.cuts is None else find_first_change(term, self.cuts.low)
        return None if found is None or not self._stop_at(found[1] - self.beyond) else found[0]

    def _exclude_sign_change(self, a: QuasiAffine, low: Fraction, high: Fraction) -> bool:
        """Exclude the iterations in which a value can be 0 from the periodic ones; returns whether that is possible."""
        rate, along, cuts = a.rate, a.rate_with_count, self.cuts
        if not rate:  # above or below for all large numbers
            self.least = max(self.least, floor(max(-low / along, -high / along)) + 1)
            return True
        if cuts is None:
            return False
        ends = sorted((-low / rate, -high / rate))
        if not along:
            return self._exclude_range(cuts, ends)
        if rate + along:
            return False
        # The end of the loop is ``beyond`` behind N, and the turn as far behind N as ``ends`` say.
        cuts.behind = max(cuts.behind, floor(self.beyond - ends[0]))
        return True

    def _exclude_range(self, cuts: LongLoop, ends: list[Fraction]) -> bool:
        """Exclude a range of iterations from the periodic ones, with all before it or all after it."""
        if cuts.count is None or ends[1] < cuts.low + cuts.count // 2:
            cuts.ahead = max(cuts.ahead, floor(ends[1]) + 1 - cuts.low)
            return True
        if ends[0] <= cuts.low + cuts.count // 2:
            return False
        cuts.behind = max(cuts.behind, cuts.low + cuts.count - ceil(ends[0]))
        return True

    def _ensure_non_negative(self, a: QuasiAffine) -> bool:
        """Whether a value is never negative, so that quotients and remainders are those of arithmetic; the first or
        last iterations are excluded for that.
        """
        if a.non_negative or a.low is None:
            return a.non_negative
        rate, along, cuts = a.rate, a.rate_with_count, self.cuts
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


def _has_operation(body: Body) -> bool:
    return any(
        (isinstance(s, Body) and _has_operation(s))
        or (isinstance(s, For) and _has_operation(s.body))
        or (isinstance(s, If) and (_has_operation(s.then) or _has_operation(s.otherwise)))
        or isinstance(s, Step)
        for s in body.steps
    )
