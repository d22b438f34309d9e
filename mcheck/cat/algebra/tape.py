"""A cat model as a straight-line program over relations, shared subexpressions computed once.

Sets are kept as relations on the diagonal, so one algebra serves both. The tape knows which checks are
*lower bounds* of co (``empty X \\ co``: X must be in co; ``empty X \\ (co | co^-1)``: every pair of X must be
ordered), and
which checks are *monotone* in the unknown relations: a monotone check, once violated, never heals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import reduce

from mcheck.base.records import dataclass
from mcheck.cat.ast import Base, Check, Empty, Kind, Let, LetRec, Model, Node, Op1, Op2, Var
from mcheck.cat.names import BASE

UNKNOWNS = frozenset(
    (
        "rf", "co", "sync_fence", "phase", "phase-order", "phase-fr", "complete", "barrier", "meet", "exited",
        "rounds", "syncbar",
    )
)  # fmt: skip
"""Base relations that an execution chooses; all the others are known from the paths alone."""

BOUND, TOTAL = "bound", "total"


@dataclass(frozen=True, slots=True)
class Instr:
    """One node: ``op`` on the values of nodes ``a`` and ``b``; a base has its ``name``."""

    op: str  # base or and sub seq inv plus opt star comp compset prod dom rng empty rec
    a: int = -1
    b: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True)
class TapeCheck:
    """An axiom or a flag of the model (acyclicity as irreflexivity of the closure). ``role`` is ``forbid``, ``flag``,
    ``bound`` or ``total``; ``monotone``: never heals.
    """

    name: str
    test: str
    negated: bool
    node: int
    role: str
    monotone: bool


@dataclass(slots=True)
class Tape:
    """``code[i]`` computes node i from earlier nodes; nodes in a ``group`` are iterated together (recursive
    definitions).
    """

    code: list[Instr] = field(default_factory=list)
    groups: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    group_of: list[int] = field(default_factory=list)
    checks: list[TapeCheck] = field(default_factory=list)
    total_co: bool = False
    """The model does not say which writes co orders, so it orders all of a location."""
    free_co: bool = False
    """More pairs of co than demanded may help an axiom or raise a flag, so all partial orders must be tried."""
    flags_on: frozenset[str] = frozenset()
    """The bases that the flags look at."""
    bases: frozenset[str] = frozenset()
    names: dict[str, int] = field(default_factory=dict)
    """The node of each name that the model binds, the last where it is bound again."""
    forbids: list[bool] = field(default_factory=list)
    """For each node: does an axiom that is no flag depend on it?"""


class _Compiler:
    def __init__(self) -> None:
        self.tape = Tape()
        self.index: dict[Instr, int] = {}
        self.vars: dict[int, int] = {}
        self.group = -1

    def emit(self, op: str, a: int = -1, b: int = -1, name: str = "") -> int:
        if op == "inv" and self.tape.code[a].op == "inv":
            return self.tape.code[a].a
        if op == "plus" and (self.tape.code[a].op == "plus" or self.tape.code[a] == Instr("base", name="co")):
            return a  # co is kept transitively closed
        if op == "and" and (found := self.split_identity(a, b)) is not None:
            return found
        if op == "or" and (found := self.group_sets(a, b)) is not None:
            return found
        return self.place(op, a, b, name)

    def split_identity(self, a: int, b: int) -> int | None:
        """``r? & s`` as ``(id & s) | (r & s)``: the first is a set, so no engine has to keep it as a relation.
        A closure among the members of ``r`` is intersected by itself: mostly that leaves out nothing, and an engine can
        share what it keeps of the closure.
        """
        for x, other in ((a, b), (b, a)):
            if self.tape.code[x].op == "opt" and not self.is_set(other):
                members = list(union_operands(self.tape, self.tape.code[x].a))
                closed = [n for n in members if self.tape.code[n].op == "plus"]
                rest = [n for n in members if n not in closed]
                united = [*closed, *([self.union(rest)] if rest else [])]
                parts = [self.emit("and", n, other) for n in (self.emit("base", name="id"), *united)]
                return self.emit("or", parts[0], self.union(parts[1:]))
        return None

    def group_sets(self, a: int, b: int) -> int | None:
        """A union with the sets among its members before the relations, unless it is one set and one relation."""
        sets: list[int] = []
        rest: list[int] = []
        for n in (*union_operands(self.tape, a), *union_operands(self.tape, b)):
            (sets if self.is_set(n) else rest).append(n)
        if not sets or not rest or len(sets) + len(rest) == 2:
            return None
        return self.place("or", self.union(sets), self.union(rest))

    def union(self, members: list[int]) -> int:
        """The union of some nodes, all sets or none."""
        return reduce(lambda x, y: self.place("or", x, y), members)

    def is_set(self, n: int) -> bool:
        """Whether a node is a subset of the identity."""
        i = self.tape.code[n]
        match i.op:
            case "base":
                return i.name == "id" or (i.name in BASE and BASE[i.name].kind is Kind.SET)
            case "and":
                return self.is_set(i.a) or self.is_set(i.b)
            case "or" | "seq":
                return self.is_set(i.a) and self.is_set(i.b)
            case "sub":
                return self.is_set(i.a)
        return i.op in ("compset", "dom", "rng", "empty")

    def place(self, op: str, a: int = -1, b: int = -1, name: str = "") -> int:
        """The node of an operation; a new one, unless there is one already."""
        key = Instr(op, a, b, name)
        if op != "rec" and key in self.index:
            return self.index[key]
        self.tape.code.append(key)
        inside = self.group >= 0 and any(x >= 0 and self.tape.group_of[x] == self.group for x in (a, b))
        self.tape.group_of.append(self.group if inside or op == "rec" else -1)
        self.index[key] = len(self.tape.code) - 1
        return len(self.tape.code) - 1

    def node(self, n: Node) -> int:
        match n:
            case Base(name):
                return self.emit("base", name=name)
            case Var(uid):
                return self.vars[uid]
            case Empty():
                return self.emit("empty")
            case Op1(op, arg, kind):
                a = self.node(arg)
                match op:
                    case "[]":
                        return a
                    case "~":
                        return self.emit("compset" if kind is Kind.SET else "comp", a)
                    case _:
                        name = {"+": "plus", "*": "star", "?": "opt", "^-1": "inv", "domain": "dom", "range": "rng"}[op]
                        return self.emit(name, a)
            case Op2(op, left, right):
                a, b = self.node(left), self.node(right)
                name = {"|": "or", "&": "and", "\\": "sub", ";": "seq", "*": "prod"}[op]
                return self.emit(name, a, b)

    def let(self, statement: Let) -> None:
        self.vars[statement.var.uid] = self.tape.names[statement.var.name] = self.node(statement.body)

    def letrec(self, statement: LetRec) -> None:
        outer, self.group = self.group, len(self.tape.groups)
        self.tape.groups.append(())
        start = len(self.tape.code)
        for let in statement.bindings:
            node = self.emit("rec", name=f"{let.var.name}#{let.var.uid}")
            self.vars[let.var.uid] = self.tape.names[let.var.name] = node
        pairs = [(self.vars[let.var.uid], self.node(let.body)) for let in statement.bindings]
        end = len(self.tape.code)
        self.tape.groups[self.group] = (*((v, body, 0) for v, body in pairs), (start, end, -1))
        self.group = outer


def compile_model(model: Model) -> Tape:
    """The tape of a checked model."""
    c = _Compiler()
    demands: dict[int, int] = {}  # check that demands pairs of co -> the node of all that it tests
    for statement in model.statements:
        match statement:
            case Let():
                c.let(statement)
            case LetRec():
                c.letrec(statement)
            case Check(test, negated, body, name, flag):
                node = c.node(body)
                role = "flag" if flag else "forbid"
                if test == "empty" and not negated and not flag:
                    role = _lower_bound(c.tape, node) or role
                    if role != "forbid":
                        demands[len(c.tape.checks)] = node
                        node = c.tape.code[node].a
                if test == "acyclic":
                    node, test = c.emit("plus", node), "irreflexive"
                c.tape.checks.append(TapeCheck(name, test, negated, node, role, True))
    tape = c.tape
    positive = _monotone(tape)
    tape.total_co = not any(a.role in (BOUND, TOTAL) for a in tape.checks)
    tape.checks = [_with_monotonicity(a, demands.get(k), positive) for k, a in enumerate(tape.checks)]
    tape.bases = frozenset(i.name for i in tape.code if i.op == "base")
    tape.total_co = tape.total_co and "co" in tape.bases
    flags = [a for a in tape.checks if a.role == "flag"]
    needed = {k for a in tape.checks if a.role != "flag" for k in ancestors(tape, a.node)}
    tape.forbids = [k in needed for k in range(len(tape.code))]
    tape.flags_on = frozenset(name for a in flags for name in dependencies(tape, a.node))
    tape.free_co = not tape.total_co and (
        "co" in tape.flags_on
        or any(not a.monotone and "co" in dependencies(tape, a.node) for a in tape.checks if a.role != "flag")
    )
    return tape


def _with_monotonicity(a: TapeCheck, whole: int | None, positive: list[bool]) -> TapeCheck:
    """The check with what is known of its monotonicity; a demand that may shrink again is but a check at the end."""
    if whole is not None and not positive[a.node]:
        return TapeCheck(a.name, a.test, a.negated, whole, "forbid", False)
    return TapeCheck(a.name, a.test, a.negated, a.node, a.role, positive[a.node] and not a.negated)


def dependencies(tape: Tape, node: int) -> set[str]:
    """The names of the bases that a node is computed from."""
    return {tape.code[k].name for k in ancestors(tape, node) if tape.code[k].op == "base"}


def union_operands(tape: Tape, node: int) -> Iterator[int]:
    """The relations that a union is made of."""
    i = tape.code[node]
    if i.op != "or":
        yield node
        return
    yield from union_operands(tape, i.a)
    yield from union_operands(tape, i.b)


def ancestors(tape: Tape, *nodes: int, but: Iterable[int] = ()) -> set[int]:
    """The nodes that some nodes are computed from, themselves included, ``but`` some and what those alone need."""
    left_out = frozenset(but)
    todo, seen = list(nodes), set(left_out)
    while todo:
        k = todo.pop()
        if k in seen:
            continue
        seen.add(k)
        i = tape.code[k]
        if i.op == "rec":
            todo += [b for _, b, kind in tape.groups[tape.group_of[k]] if kind == 0]
        todo += [x for x in (i.a, i.b) if x >= 0]
    return seen - left_out


def _is_co(tape: Tape, n: int) -> bool:
    return tape.code[n] == Instr("base", name="co")


def _lower_bound(tape: Tape, n: int) -> str | None:
    """Whether node n is ``X \\ co`` or ``X \\ (co | co^-1)``."""
    i = tape.code[n]
    if i.op != "sub":
        return None
    if _is_co(tape, i.b):
        return BOUND
    y = tape.code[i.b]
    if y.op == "or":
        for p, q in ((y.a, y.b), (y.b, y.a)):
            if _is_co(tape, p) and tape.code[q].op == "inv" and _is_co(tape, tape.code[q].a):
                return TOTAL
    return None


def _monotone(tape: Tape) -> list[bool]:
    """For each node: does it only grow when the unknown relations grow?"""
    depends = [False] * len(tape.code)
    grows = [True] * len(tape.code)
    for n, i in enumerate(tape.code):
        args = [x for x in (i.a, i.b) if x >= 0]
        depends[n] = i.name in UNKNOWNS or i.op == "rec" or any(depends[x] for x in args)
        grows[n] = all(grows[x] for x in args)
        if (i.op in ("comp", "compset") and depends[i.a]) or (i.op == "sub" and depends[i.b]):
            grows[n] = False
    for group in tape.groups:  # a body that does not grow taints its variable: one more pass suffices to spread it
        if not all(grows[body] for _, body, kind in group if kind == 0):
            for v, _, kind in group:
                if kind == 0:
                    grows[v] = False
            for n, i in enumerate(tape.code):
                grows[n] = grows[n] and all(grows[x] for x in (i.a, i.b) if x >= 0)
    return grows
