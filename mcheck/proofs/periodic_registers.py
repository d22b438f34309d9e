"""Constant folding of periodic registers: a stage and a phase that a thread keeps in registers.

A loop that counts in registers (``add s, s, 1; setp.eq w, s, S; @w mov s, 0``) has the same text in every round, and
does the same only every so many rounds. The values of such registers follow from constants, so they can be substituted
where they are used: the loop then reads as if it had been written with ``k % S``, and its period is that of its
effects.

A register is *kept* if it is periodic: its value at the beginning of every round follows from those of the kept
registers at the beginning of the round before. So the known state of a round depends on them alone, and they repeat
forever once they have repeated. Nothing is known of other registers in the loop and after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import field
from math import lcm

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.effects.operands import decisive_expressions
from mcheck.ir import ops
from mcheck.ir.alu import UNCOMPUTED
from mcheck.ir.constant_propagation import Known, evaluate_constant, evaluate_guard, propagate
from mcheck.ir.def_use import read_registers, registers_of, written_registers
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary, apply_unary
from mcheck.ir.loop_unrolling import LoopPeriodicity
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.resolve import Undefined, checked_binary, resolve

MAX_PERIOD = 45
"""The longest period that any proof makes use of."""
PROBED_ROUNDS = 2 * MAX_PERIOD
"""Number of rounds that show whether the kept registers are periodic."""

Values = tuple[tuple[str, int], ...]
"""Known values of the registers that an operation reads."""


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """The registers that a thread's loop keeps: periodic with ``period`` rounds, from round ``ahead`` on."""

    span: Span
    ahead: int
    kept: frozenset[str] = frozenset()
    period: int = 1
    behind: bool = False
    """Whether anything after the loop reads them."""


@dataclass(slots=True)
class _Longest:
    """The longest code of a thread so far, its folded form, and what is known at the beginning of its rounds.

    ``live`` are the registers that something still reads.
    """

    code: tuple[Op, ...]
    folded: tuple[Op, ...]
    live: frozenset[str]
    starts: list[Known]


@dataclass(slots=True)
class Folding:
    """Programs of one family with periodic registers as constants; ``rounds`` is how they repeat.

    Computations of such registers alone become no-ops.
    """

    rounds: LoopPeriodicity
    _counting: dict[int, CountedLoop]
    _texts: _Texts
    _longest: dict[int, _Longest] = field(default_factory=dict)

    def program(self, program: Program) -> Program:
        """Return the program in which these registers decide nothing."""
        walks: dict[object, _Walk | None] = {}
        return replace(program, threads=tuple(self._thread(t, walks) for t in program.threads))

    def _thread(self, thread: Thread, walks: dict[object, _Walk | None]) -> Thread:
        counting = self._counting.get(thread.index)
        begins = () if counting is None else thread.rounds.get(counting.span, ())
        if counting is None or not begins:
            return thread
        known, texts = self._longest.get(thread.index), self._texts
        end, count = begins[-1], len(begins) - 1
        if known is not None and count < len(known.starts) and thread.code[:end] == known.code[:end]:
            behind = _walk(thread, texts, counting, end, known.starts[count])
            if behind is None:
                return thread
            rest = texts.put(thread.code[end:], behind.held)
            if texts.live(rest) <= known.live:
                return replace(thread, code=(*known.folded[:end], *texts.bare(rest, known.live)))
        path = texts.path(thread), counting.kept
        if path not in walks:
            walks[path] = _walk(thread, texts, counting)
        whole = walks[path]
        if whole is None:
            return thread
        code = texts.put(thread.code, whole.held)
        live = texts.live(code)
        code = texts.bare(code, live)
        if known is None or len(known.starts) < len(whole.starts):
            self._longest[thread.index] = _Longest(thread.code, code, live, whole.starts)
        return replace(thread, code=code)


def _walk(
    thread: Thread, texts: _Texts, counting: CountedLoop, start: int = 0, known: Known | None = None
) -> _Walk | None:  # fmt: skip
    """Return the known values where a loop keeps registers; ``None`` for control flow that is not supported."""
    try:
        return _Walk(thread, texts, counting, counting.kept, start, known)
    except _Irreducible:
        return None


def may_fold(program: Program) -> bool:
    """Return whether registers decide anything in the loops of a program."""
    texts = _Texts()
    return any(texts.names(op) for op in program.operations)


def find_folding(program: Program, rounds: LoopPeriodicity) -> Folding | None:
    """Return the folding of a program's family, which must have enough rounds to show it.

    ``None`` if no register can be folded.
    """
    texts = _Texts()
    counting: dict[int, CountedLoop] = {}
    known: dict[object, CountedLoop | None] = {}
    for thread in program.threads:
        spans = [span for span in thread.rounds if span in rounds.loops]
        if len(spans) != 1 or not any(map(texts.names, thread.code)):
            continue
        path = texts.path(thread)
        if path not in known:
            known[path] = _find_counted_loop(thread, texts, spans[0], rounds)
        found = known[path]
        if found is not None:
            counting[thread.index] = found
    period = lcm(rounds.period, *(c.period for c in counting.values()))
    if not counting or period > MAX_PERIOD:
        return None
    counted = rounds.counted or any(c.behind for c in counting.values())
    return Folding(replace(rounds.with_period(period), counted=counted), counting, texts)


def _find_counted_loop(thread: Thread, texts: _Texts, span: Span, rounds: LoopPeriodicity) -> CountedLoop | None:
    """Return the registers that the loop of a thread keeps, if anything reads them."""
    loop = CountedLoop(span, rounds.loops[span].ahead)
    try:
        starts = _Walk(thread, texts, loop, None).starts[loop.ahead :]
        periods = {
            name: p for name in _always_known(starts) if (p := _find_period([s[name] for s in starts], rounds.period))
        }
        while True:
            walk = _Walk(thread, texts, loop, frozenset(periods))
            pairs = list(zip(walk.starts[loop.ahead :], starts, strict=True))
            lost = [name for name in periods if any(now.get(name) != then[name] for now, then in pairs)]
            if not lost:
                break
            for name in lost:
                del periods[name]
    except _Irreducible:
        return None
    asked = [pc for pc, values in enumerate(walk.held) if values]
    if not asked:
        return None
    behind = asked[-1] >= thread.rounds[span][-1]
    return replace(loop, kept=frozenset(periods), period=lcm(*periods.values(), 1), behind=behind)


def _always_known(starts: Sequence[Known]) -> set[str]:
    """Return the registers that are known at the beginning of all rounds."""
    return set.intersection(*map(set, starts)) if starts else set()


def _find_period(values: Sequence[int], least: int) -> int | None:
    """Return the period of the values, a multiple of ``least``; ``None`` if they have not repeated twice."""
    for period in range(least, min(MAX_PERIOD, len(values) // 2) + 1, least):
        if values[period:] == values[:-period]:
            return period
    return None


@dataclass(slots=True)
class _Texts:
    """Operations, which threads and rounds share, with cached facts about them."""

    _names: dict[int, frozenset[str]] = field(default_factory=dict)
    _steps: dict[int, object] = field(default_factory=dict)
    _folded: dict[tuple[int, Values], Op] = field(default_factory=dict)
    _read: dict[int, frozenset[str]] = field(default_factory=dict)
    _nothing: dict[int, Op] = field(default_factory=dict)
    _held: list[Op] = field(default_factory=list)
    """The operations of the caches, kept alive so that no other one gets their identity."""

    def names(self, op: Op) -> frozenset[str]:
        """Return the registers that decide what an operation does that others may observe."""
        found = self._names.get(id(op))
        if found is None:
            self._held.append(op)
            found = self._names[id(op)] = frozenset() if _is_local(op) else _deciding_registers(op)
        return found

    def path(self, thread: Thread) -> object:
        """Return what determines the register values of a thread, and where they are read."""
        steps = self._steps
        found = []
        for pc, op in enumerate(thread.code):
            step = steps.get(id(op))
            if step is None:
                self._held.append(op)
                local = _is_local(op) or isinstance(op, ops.Exit | ops.UnknownContinuation)
                names = self.names(op), frozenset(name for name, _ in written_registers(op))
                step = steps[id(op)] = id(op) if local else names if any(names) else ()
            if step:
                found.append((pc, step))
        return tuple(found), tuple(thread.init.items()), tuple(thread.rounds.items()), len(thread.code)

    def put(self, code: Sequence[Op], held: Sequence[Values]) -> tuple[Op, ...]:
        """Return the code with known values substituted for registers."""
        out = list(code)
        for pc, values in enumerate(held):
            if values and (names := self.names(out[pc])):
                out[pc] = self.folded(out[pc], tuple((n, v) for n, v in values if n in names))
        return tuple(out)

    def asked(self, code: Sequence[Op]) -> frozenset[str]:
        """Return the registers that operations other than computations read."""
        return frozenset().union(*map(self._reads, {id(op): op for op in code if type(op) is not ops.Alu}.values()))

    def _reads(self, op: Op) -> frozenset[str]:
        found = self._read.get(id(op))
        if found is None:
            self._held.append(op)
            found = self._read[id(op)] = frozenset(name for name, _ in read_registers(op))
        return found

    def live(self, code: Sequence[Op]) -> frozenset[str]:
        """Return the live registers: those read by anything except computations of dead registers."""
        live = set(self.asked(code))
        todo = [op for op in {id(op): op for op in code}.values() if type(op) is ops.Alu]
        while needed := [op for op in todo if _is_live(op, live)]:
            todo = [op for op in todo if not _is_live(op, live)]
            live.update(*map(self._reads, needed))
        return frozenset(live)

    def bare(self, code: Sequence[Op], live: Collection[str]) -> tuple[Op, ...]:
        """Return the code with the computations of dead registers replaced by no-ops."""
        idle = {id(op): self._idle(op) for op in code if type(op) is ops.Alu and not _is_live(op, live)}
        return tuple([idle.get(id(op), op) for op in code])

    def _idle(self, op: ops.Alu) -> Op:
        found = self._nothing.get(id(op))
        if found is None:
            self._held.append(op)
            found = self._nothing[id(op)] = replace(op, op="nop", dsts=(), srcs=(), guard=None)
        return found

    def folded(self, op: Op, values: Values) -> Op:
        """Return the operation with values substituted for registers; the same object for the same values."""
        if not values:
            return op
        found = self._folded.get((id(op), values))
        if found is None:
            self._held.append(op)
            found = self._folded[id(op), values] = _substitute(op, dict(values))
        return found


def _is_live(op: Op, live: Collection[str]) -> bool:
    """Return whether a computation defines a live register, or has another effect."""
    assert isinstance(op, ops.Alu)
    if not op.dsts or any(reg is None for reg in op.dsts) or op.op in ("mapa", *UNCOMPUTED, "div", "rem"):
        return True
    return any(reg is not None and reg.name in live for reg in op.dsts)


def _is_local(op: Op) -> bool:
    """Return whether an operation computes or branches."""
    return op.facets.computes or isinstance(op, ops.Branch)


def _deciding_registers(op: Op) -> frozenset[str]:
    names = {name for expr in decisive_expressions(ops.performed_operation(op)) for name in registers_of(expr)}
    return frozenset(names | ({op.guard.reg.name} if op.guard is not None else set()))


def _substitute(op: Op, known: Known) -> Op:
    """Return the operation with known values in the place of registers; a guard that holds is removed."""
    out = resolve(op, lambda expr: _value(expr, known))
    return replace(out, guard=None) if op.guard is not None and evaluate_guard(op.guard, known) else out


def _value(expr: Expr, known: Known) -> Expr:
    match expr:
        case Reg(name):
            return Const(known[name]) if name in known else expr
        case Unary(op, inner):
            a = _value(inner, known)
            if isinstance(a, Const):
                return Const(apply_unary(op, a.value))
            return expr if a is inner else Unary(op, a)
        case Binary(op, left, right):
            a, b = _value(left, known), _value(right, known)
            if isinstance(a, Const) and isinstance(b, Const):
                try:
                    return Const(checked_binary(op, a.value, b.value))
                except Undefined:
                    return expr
            return expr if a is left and b is right else Binary(op, a, b)
    return expr


class _Irreducible(Exception):
    """A jump into the loop, out of it, or between rounds elsewhere than at the end of one."""


class _Walk:
    """An abstract execution of a thread's code from a place where ``known`` registers are known.

    ``held`` are the known registers that decide what each operation does, ``starts`` what is known at the beginning of
    each round and after the last one.

    From round ``ahead`` of the loop on only the ``kept`` registers are known at the beginning of a round, unless that
    is ``None``, and nothing else after the last one. At a join only what is known on all paths remains; in a loop that
    is not unrolled, nothing that it writes. Raises ``_Irreducible``.
    """

    def __init__(
        self, thread: Thread, texts: _Texts, loop: CountedLoop, kept: Collection[str] | None, start: int = 0,
        known: Known | None = None,
    ) -> None:  # fmt: skip
        self.held: list[Values] = []
        self.starts: list[Known] = []
        self._thread = thread
        self._begins = begins = thread.rounds[loop.span]
        self._arriving: dict[int, list[Known]] = {}
        self._heads: dict[int, Known] = {}
        borders = {pc: k for k, pc in enumerate(begins)}
        again = _rewritten_registers(thread, start)
        here: Known | None = dict(thread.init if known is None else known)
        for pc, op in enumerate(thread.code[start:], start):
            number = borders.get(pc)
            if number is not None:
                if here is None:
                    raise _Irreducible
                if kept is not None and number >= loop.ahead:
                    here = {name: held for name, held in here.items() if name in kept}
                self.starts.append(dict(here))
            for other in self._arriving.pop(pc, ()):
                here = other if here is None else {name: v for name, v in here.items() if other.get(name) == v}
            if here is None:
                self.held.append(())
                continue
            if pc in again:
                for name in again[pc]:
                    here.pop(name, None)
                self._heads[pc] = dict(here)
            names = texts.names(op)
            self.held.append(tuple([(n, here[n]) for n in sorted(names) if n in here]) if names else ())
            here = self._behind(pc, op, here)
        if not start and len(self.starts) < len(begins):  # the last round ends where the code does
            if here is None:
                raise _Irreducible
            self.starts.append({name: held for name, held in here.items() if kept is None or name in kept})

    def _behind(self, pc: int, op: Op, known: Known) -> Known | None:
        """Return what is known after an operation, ``None`` if it is not reached; branch targets are updated."""
        runs = evaluate_guard(op.guard, known)
        if runs is False:
            return known
        match op:
            case ops.Branch():
                condition = 1 if op.condition is None else evaluate_constant(op.condition, known)
                if condition == 0:
                    return known
                self._goes(pc, self._thread.labels[op.target], known)
                return None if runs and condition is not None else known
            case ops.Exit() | ops.UnknownContinuation():
                return None if runs else known
            case ops.Alu() if runs:
                propagate(op, known)
                return known
        for name, _ in written_registers(op):
            known.pop(name, None)
        return known

    def _goes(self, pc: int, there: int, known: Known) -> None:
        """Record a jump to another place."""
        if bisect_right(self._begins, pc) != bisect_right(self._begins, there):
            raise _Irreducible
        if there > pc:
            self._arriving.setdefault(there, []).append(dict(known))
        elif any(known.get(name) != held for name, held in self._heads[there].items()):
            raise _Irreducible


def _rewritten_registers(thread: Thread, start: int) -> dict[int, set[str]]:
    """Return, by the target of each back edge, the registers that its loop writes."""
    found: dict[int, set[str]] = {}
    for pc, op in enumerate(thread.code[start:], start):
        if isinstance(op, ops.Branch) and (head := thread.labels[op.target]) <= pc:
            found.setdefault(head, set()).update(n for x in thread.code[head : pc + 1] for n, _ in written_registers(x))
    return found
