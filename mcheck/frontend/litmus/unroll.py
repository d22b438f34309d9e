"""Unrolling: from the body of a role to the code of its threads, with names and special registers folded.

A statement is decoded once. Its resolved forms are memoized by the values that it computes from its names
(``mcheck.frontend.litmus.readers``), so that iterations share equal operations, and the threads of a role share
whatever does not depend on the thread. If all loop bounds and conditions of a thread have the same values as another
thread's, its code is copied, except for the statements that depend on the thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.readers import find_readers
from mcheck.frontend.litmus.statements import Body, Define, For, If, Key, Mark, Statement, Step
from mcheck.frontend.litmus.thread_values import Addresses
from mcheck.ir.expr import Binary, Const, Expr, Name, Special, Unary
from mcheck.ir.ops import Branch, Label, Op
from mcheck.ir.program import LoopIterations, Place
from mcheck.ir.resolve import Undefined, collect_free_names, expressions, fold_expression, resolve

MAX_OPERATIONS = 2_000_000
CTA_KEY = "@cta"
THREAD, CTA = "thread", "cta"
"""What a statement depends on: the thread, or its CTA."""


class Budget:
    """The number of operations that may still be unrolled."""

    __slots__ = ("remaining",)

    def __init__(self) -> None:
        self.remaining = MAX_OPERATIONS

    def take(self, span: Span | None, count: int = 1) -> None:
        """Spend ``count`` operations; raises ``InputError`` if fewer remain."""
        self.require(span, count)
        self.remaining -= count

    def require(self, span: Span | None, count: int) -> None:
        """Raise ``InputError`` if fewer than ``count`` operations remain: a huge loop fails before it is unrolled."""
        if count > self.remaining:
            raise problem("LIT057", span, limit=MAX_OPERATIONS, hint="use fewer threads or fewer iterations")


@dataclass(frozen=True, slots=True)
class Counting:
    """Records where iterations begin; of the ``loops``, skips ``left_out`` iterations after the first ``kept``."""

    loops: Collection[Span] = ()
    kept: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Own:
    """A statement that depends on the thread: its positions in the code, each with the values of the names in it and
    of all names there.
    """

    step: Step
    places: list[tuple[int, Key, dict[str, Expr]]]


@dataclass(frozen=True, slots=True)
class _Decision:
    """The value of a loop bound or a condition that depends on the thread, with the values of the names."""

    expr: Expr
    values: dict[str, Expr]
    outcome: Expr


class Unroller:
    """Builds the code of one thread."""

    def __init__(
        self, place: Place, name: str, values: Mapping[str, int], addresses: Addresses, budget: Budget, share: bool,
        counting: Counting | None = None, known: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.code: list[Op] = []
        self.labels: dict[str, int] = {}
        self.rounds: dict[Span, tuple[int, ...]] = {}
        self._counting = counting
        self._place = place
        self._name = name
        self._special = values
        self._known: dict[str, Expr] = {name: Const(value) for name, value in (known or {}).items()}
        self._values = dict(self._known)
        self._of_thread: dict[int, tuple[int, ...]] = {}
        """By statement, the values of its names that depend on the thread."""
        self._addresses = addresses
        self._budget = budget
        self._share = share
        self._frames: list[tuple[frozenset[str], str]] = []
        self._fresh = 0
        self._loops: list[str] = []
        self._turns: dict[int, str] = {}
        self._decisions: dict[object, _Decision] = {}
        self._own: dict[int, _Own] = {}
        self._spent = 0

    def follow(self, other: Unroller) -> bool:
        """Copy the code of another thread of the role, if all loop bounds and conditions have the same values."""
        here = self._place.cta == other._place.cta
        mine = [own for own in other._own.values() if not (here and own.step.owner == CTA)]
        if any(isinstance(own.step.op, Branch) for own in mine):
            return False  # its target depends on the loops around it
        try:
            for made in other._decisions.values():
                self._values = made.values
                if self.fold(made.expr) != made.outcome:
                    return False
        except (Undefined, InputError):  # reported when this thread is unrolled by itself
            return False
        finally:
            self._values = dict(self._known)
        self._budget.take(None, other._spent)
        self.code = code = list(other.code)
        for own in mine:
            step = own.step
            known = step.memo.setdefault(self._own_key(step), {})
            for position, key, values in own.places:
                found = known.get(key)
                if found is None:
                    self._values = values
                    found = self._step(step)
                code[position] = found
        self._values = dict(self._known)
        self.labels, self.rounds, self._turns = other.labels, other.rounds, other._turns
        return True

    def run(self, body: Body) -> None:
        """Unroll the whole body of the role."""
        before = self._budget.remaining
        self._run(body)
        self._spent = before - self._budget.remaining

    def _run(self, body: Body) -> None:
        self._frames.append((body.labels, ""))
        self._body(body)
        self._frames.pop()
        for op in self.code:
            if isinstance(op, Branch) and op.target not in self.labels:
                known = [label for label in self.labels if "." not in label]
                raise problem("LIT054", op.span, name=op.target, thread=self._name, hint=suggest(op.target, known))

    def require(self, body: Body, threads: int) -> None:
        """Raise ``InputError`` if this many threads that run the body certainly exceed the budget, before the first of
        them is unrolled.
        """
        if self._counting is None:
            loops = [(self._least(s.body) * self._rounds(s), s.span) for s in body.steps if isinstance(s, For)]
            for most, span in sorted(loops, key=lambda found: found[0])[-1:]:
                self._budget.require(span, threads * most)

    def _least(self, body: Body) -> int:
        """A lower bound of the operations in a body: those under no condition, and in loops of known length."""
        found = 0
        for s in body.steps:
            match s:
                case Step() | Mark():
                    found += 1
                case Body():
                    found += self._least(s)
                case For():
                    found += self._rounds(s) * (1 + self._least(s.body))
        return found

    def _rounds(self, loop: For) -> int:
        """The number of iterations of a loop, 0 if its bounds depend on the thread or on other loops."""
        names: set[str] = set()
        collect_free_names(loop.low, names)
        collect_free_names(loop.high, names)
        if names:
            return 0
        bounds = (self.constant(b, loop.span, "a bound of a for loop") for b in (loop.low, loop.high))
        return len(range(*bounds))

    def iterations(self) -> LoopIterations | None:
        """The loop iterations of the operations; ``None`` if there is no loop."""
        if not self._turns:
            return None
        return LoopIterations(len(self.code), tuple(self._turns), tuple(self._turns.values()))

    def fold(self, expr: Expr) -> Expr:
        """Fold an expression with the names and the special registers of this thread."""
        return fold_expression(expr, self._lookup)

    def _lookup(self, item: Name | Special) -> Expr:
        if isinstance(item, Special):
            if item.name not in self._special:
                raise problem("LIT063", item.span, name=item.name)
            return Const(self._special[item.name])
        value = self._values.get(item.name)
        if value is not None:
            return value
        return self._addresses.resolve(item, self._place.cta, self.fold)

    def constant(self, expr: Expr, span: Span, what: str) -> int:
        """The value of ``expr`` in this thread, which must be constant."""
        value = self._evaluate(expr, span)
        if not isinstance(value, Const):
            raise problem("LIT016", span, what=what, expected="constants, loop variables and special registers")
        return value.value

    def _evaluate(self, expr: Expr, span: Span | None) -> Expr:
        """The value of a loop bound, a constant or a condition."""
        try:
            outcome = self.fold(expr)
        except Undefined as error:
            raise problem("LIT017", span, reason=str(error)) from None
        names: set[str] = set()
        collect_free_names(expr, names)
        if self._share and any(name[0] == "%" or self._addresses.is_shared(name) for name in names):
            key = id(expr), *map(self._value, sorted(names))
            if key not in self._decisions:
                self._decisions[key] = _Decision(expr, dict(self._values), outcome)
        return outcome

    def _body(self, body: Body) -> None:
        shadowed: dict[str, Expr | None] = {}
        for statement in body.steps:
            self._statement(statement, shadowed)
        for name, value in shadowed.items():
            if value is None:
                del self._values[name]
            else:
                self._values[name] = value

    def _statement(self, statement: Statement, shadowed: dict[str, Expr | None]) -> None:
        match statement:
            case Step():
                self._budget.take(statement.op.span)
                op = self._step(statement)
                if statement.owner:
                    own = self._own.setdefault(id(statement), _Own(statement, []))
                    own.places.append((len(self.code), self._key(statement), dict(self._values)))
                self.code.append(op)
            case Mark():
                self._budget.take(statement.span)
                self._mark(self._label(statement.name), statement.span, f"{statement.name}:")
            case Define():
                value = self.constant(statement.value, statement.span, "the value of a const")
                if statement.name not in shadowed:
                    shadowed[statement.name] = self._values.get(statement.name)
                self._values[statement.name] = Const(value)
            case For():
                self._for(statement)
            case If():
                self._if(statement)
            case Body():
                self._body(statement)

    def _for(self, loop: For) -> None:
        low = self.constant(loop.low, loop.span, "a bound of a for loop")
        high = self.constant(loop.high, loop.span, "a bound of a for loop")
        if high < low and loop.plain:  # with names it is a loop that happens to have no iterations
            raise problem("LIT056", loop.span, low=low, high=high)
        before = self._values.get(loop.variable)
        counting = self._counting if not self._loops else None
        numbers: Sequence[int] = range(low, high)
        if counting is not None and counting.left_out and loop.span in counting.loops:
            kept = low + counting.kept
            numbers = (*range(low, min(kept, high)), *range(kept + counting.left_out, high))
        self._budget.require(loop.span, len(numbers) * (1 + _straight(loop.body)))
        self._budget.take(loop.span, len(numbers))
        begins: list[int] = []
        self._loops.append("")
        for value in numbers:
            begins.append(len(self.code))
            self._values[loop.variable] = Const(value)
            self._loops[-1] = f"{loop.variable}={value}"
            self._turns[len(self.code)] = " ".join(self._loops)
            if loop.body.labels:
                self._fresh += 1
                self._frames.append((loop.body.labels, f".{self._fresh}"))
                self._body(loop.body)
                self._frames.pop()
            else:
                self._body(loop.body)
        self._loops.pop()
        self._turns[len(self.code)] = " ".join(self._loops)
        if counting is not None:
            self.rounds[loop.span] = (*begins, len(self.code))
        if before is None:
            self._values.pop(loop.variable, None)
        else:
            self._values[loop.variable] = before

    def _if(self, choice: If) -> None:
        condition = self._evaluate(choice.condition, choice.span)
        if isinstance(condition, Const):
            self._body(choice.then if condition.value else choice.otherwise)
            return
        self._fresh += 1
        skip, end = f"else.{self._fresh}", f"endif.{self._fresh}"
        self._emit(Branch(target=skip, condition=_negation(condition), span=choice.span, text=choice.text))
        self._body(choice.then)
        if choice.otherwise.steps:
            self._emit(Branch(target=end, span=choice.span, text="else"))
            self._mark(skip, choice.span, "else")
            self._body(choice.otherwise)
            self._mark(end, choice.span, "}")
        else:
            self._mark(skip, choice.span, "}")

    def _emit(self, op: Op) -> None:
        self._budget.take(op.span)
        self.code.append(op)

    def _mark(self, name: str, span: Span, text: str) -> None:
        self.labels[name] = len(self.code)
        self.code.append(Label(name=name, span=span, text=text))

    def _label(self, name: str) -> str:
        for labels, suffix in reversed(self._frames):
            if name in labels:
                return name + suffix
        return name

    def _step(self, step: Step) -> Op:
        op = step.op
        if not self._share:
            return self._resolved(step)
        if step.common_names is None:
            names = _free(step, self._addresses)
            step.own_names = tuple(name for name in names if _is_own(name))
            step.common_names = tuple(name for name in names if not _is_own(name))
            step.owner = _mine(step.own_names)
            step.readers = find_readers(_expressions(step), self._addresses.has)
        if not step.common_names and not step.own_names and step.span is None and not isinstance(op, Branch):
            return op
        key, known = self._key(step), step.memo.setdefault(self._own_key(step), {})
        found = known.get(key)
        if found is None:
            found = self._resolved(step)
            if not isinstance(op, Branch):
                known[key] = found
        return found

    def _key(self, step: Step) -> Key:
        """The memo key of a statement, apart from what depends on the thread."""
        values = self._values
        try:
            return tuple([read(values) for read in step.readers])
        except (ArithmeticError, KeyError):  # reported when the statement is resolved
            return None, *[values.get(name) for name in step.common_names or ()]

    def _value(self, name: str) -> int:
        """The value of a name, whether it depends on the thread or not."""
        if name[0] == "%":
            return self._special.get(name[1:], 0)
        value = self._values.get(name)
        return value.value if isinstance(value, Const) else -1

    def _own_key(self, step: Step) -> tuple[int, ...]:
        """The values of the names that depend on the thread."""
        found = self._of_thread.get(id(step))
        if found is None:
            found = self._of_thread[id(step)] = tuple(
                [
                    self._place.cta.number if name == CTA_KEY else self._special.get(name[1:], 0)
                    for name in step.own_names
                ]
            )
        return found

    def _resolved(self, step: Step) -> Op:
        op = step.op
        try:
            if step.decode_folded is not None:
                op = step.decode_folded(self.fold)
            if isinstance(op, Branch):
                target = self._label(op.target)
                if target != op.target:
                    op = replace(op, target=target)
            return resolve(op, self.fold, step.span)
        except Undefined as error:
            raise problem("LIT017", op.span, reason=str(error)) from None
        except InputError as error:
            if error.span is None:
                error.span = op.span
            raise


def _straight(body: Body) -> int:
    """The number of operations of a body under no condition and in no nested loop."""
    return sum(_straight(s) if isinstance(s, Body) else isinstance(s, Step | Mark) for s in body.steps)


def _negation(expr: Expr) -> Expr:
    opposite = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    if isinstance(expr, Unary) and expr.op == "!":
        return expr.operand
    if isinstance(expr, Binary) and expr.op in opposite:
        return Binary(opposite[expr.op], expr.left, expr.right)
    return Unary("!", expr)


def _mine(names: Collection[str]) -> str:
    """What a statement with these names depends on; empty if it is the same for all threads."""
    if any(name[0] == "%" for name in names):
        return THREAD
    return CTA if CTA_KEY in names else ""


def _is_own(name: str) -> bool:
    """Whether a name may have another value in another thread of its role."""
    return name[0] == "%" or name == CTA_KEY


def _expressions(step: Step) -> tuple[Expr, ...]:
    return *(expr for _, expr in expressions(step.op)), *step.foldable


def _free(step: Step, addresses: Addresses) -> tuple[str, ...]:
    names: set[str] = set()
    for expr in _expressions(step):
        collect_free_names(expr, names)
    if any(addresses.is_shared(name) for name in names):
        names.add(CTA_KEY)
    return tuple(sorted(names))
