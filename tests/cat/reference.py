"""The reference evaluator of cat: a model on one execution, with plain sets of pairs, straight from the definitions.

Far too slow to explore with and easy to believe: tests hold the engines' evaluators against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcheck.base.errors import InternalError
from mcheck.cat.ast import Base, Check, Empty, Kind, Let, LetRec, Model, Node, Op1, Op2, Var

Event = int
Pair = tuple[Event, Event]
Events = frozenset[Event]
Pairs = frozenset[Pair]
Value = Events | Pairs


class Reference:
    """Events, base sets and relations of one execution; ``_`` and ``id`` are supplied here.

    A base name that is not given is an error of the caller, never an empty set.
    """

    def __init__(self, events: Iterable[Event], base: Mapping[str, Iterable[object]]) -> None:
        self.events: Events = frozenset(events)
        self.base: dict[str, frozenset[object]] = {name: frozenset(value) for name, value in base.items()}
        self.base.setdefault("_", frozenset(self.events))
        self.base.setdefault("id", frozenset((event, event) for event in self.events))
        self.values: dict[int, Value] = {}

    def run(self, model: Model) -> list[tuple[Check, bool]]:
        """Every axiom and flag of ``model`` with whether its test holds, in order."""
        answers: list[tuple[Check, bool]] = []
        for statement in model.statements:
            if isinstance(statement, Let):
                self.values[statement.var.uid] = self.value(statement.body)
            elif isinstance(statement, LetRec):
                self.fixpoint(statement)
            else:
                answers.append((statement, self.holds(statement)))
        return answers

    def consistent(self, model: Model) -> bool:
        """Does the execution satisfy every axiom? Flags forbid nothing."""
        return all(holds for check, holds in self.run(model) if not check.flag)

    def fixpoint(self, group: LetRec) -> None:
        """The least solution, from below."""
        for let in group.bindings:
            self.values[let.var.uid] = frozenset[Event]()
        while True:
            new = {let.var.uid: self.value(let.body) for let in group.bindings}
            if all(self.values[uid] == value for uid, value in new.items()):
                return
            self.values.update(new)

    def holds(self, check: Check) -> bool:
        """``acyclic``, ``irreflexive`` or ``empty``, or their negation."""
        if check.test == "empty":
            answer = not self.value(check.body)
        else:
            relation = self.pairs(check.body)
            if check.test == "acyclic":
                relation = _closure(relation)
            answer = all(left != right for left, right in relation)
        return answer != check.negated

    def set(self, node: Node) -> Events:
        """The value of a set."""
        if node.kind is not Kind.SET:
            raise InternalError(f"{node} is not a set")
        return self.value(node)  # type: ignore[return-value]

    def pairs(self, node: Node) -> Pairs:
        """The value of a relation."""
        if node.kind is not Kind.REL:
            raise InternalError(f"{node} is not a relation")
        return self.value(node)  # type: ignore[return-value]

    def value(self, node: Node) -> Value:
        """The value of either."""
        if isinstance(node, Base):
            if node.name not in self.base:
                raise InternalError(f"no value for the base name {node.name}")
            return self.base[node.name]  # type: ignore[return-value]
        if isinstance(node, Var):
            return self.values[node.uid]
        if isinstance(node, Empty):
            return frozenset[Event]()
        if isinstance(node, Op1):
            return self.unary(node)
        return self.binary(node)

    def unary(self, node: Op1) -> Value:
        identity = frozenset((event, event) for event in self.events)
        if node.op == "[]":
            return frozenset((event, event) for event in self.set(node.arg))
        if node.op == "~" and node.kind is Kind.SET:
            return self.events - self.set(node.arg)
        relation = self.pairs(node.arg)
        match node.op:
            case "~":
                return frozenset((a, b) for a in self.events for b in self.events if (a, b) not in relation)
            case "^-1":
                return frozenset((b, a) for a, b in relation)
            case "?":
                return relation | identity
            case "+":
                return _closure(relation)
            case "*":
                return _closure(relation) | identity
            case "domain":
                return frozenset(a for a, _ in relation)
            case "range":
                return frozenset(b for _, b in relation)
        raise InternalError(f"unknown operator {node.op}")

    def binary(self, node: Op2) -> Value:
        if node.op == "*":
            return frozenset((a, b) for a in self.set(node.left) for b in self.set(node.right))
        if node.op == ";":
            return _compose(self.pairs(node.left), self.pairs(node.right))
        left: frozenset[object] = frozenset(self.value(node.left))
        right: frozenset[object] = frozenset(self.value(node.right))
        match node.op:
            case "|":
                return left | right  # type: ignore[return-value]
            case "&":
                return left & right  # type: ignore[return-value]
            case "\\":
                return left - right  # type: ignore[return-value]
        raise InternalError(f"unknown operator {node.op}")


def _compose(left: Pairs, right: Pairs) -> Pairs:
    return frozenset((a, d) for a, b in left for c, d in right if b == c)


def _closure(relation: Pairs) -> Pairs:
    closed = relation
    while True:
        longer = closed | _compose(closed, relation)
        if longer == closed:
            return closed
        closed = longer
