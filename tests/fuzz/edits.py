"""Random edits of cat models, on the checked syntax tree, printed back as cat.

Some change what the model means: an alternative of a union goes, a test is dropped or another one joins it, a closure
or an option goes, an axiom or a flag goes. Others change how it is written: a definition is inlined, all are renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

from mcheck.base.errors import McheckError
from mcheck.cat.ast import Base, Check, Kind, Let, LetRec, Model, Node, Op1, Op2, Statement, Var
from mcheck.cat.library import parse_model
from tests.cat.pretty import show_model

Rewrite = Callable[[Node], Node]
Edit = Callable[[Random, Model], tuple[str, Model] | None]
"""What has been done, in words, and the model that comes of it; nothing where there is no occasion."""

SETS = ("R", "W", "M", "F", "GEN", "ASYNC", "RLX", "ACQ", "REL", "SC", "CTA", "CLUSTER", "GPU", "SYS")
RELATIONS = ("po", "loc", "vloc", "sr", "scta", "int", "ext", "complete-overlap")


def edited(random: Random, model: Model) -> tuple[str, Model]:
    """A model that differs from another in one place, read back from its text."""
    while True:
        edit = random.choices(list(EDITS), list(EDITS.values()))[0]
        made = edit(random, model)
        if made is None:
            continue
        what, changed = made
        try:
            return what, parse_model(show_model(replace(changed, name=f"{model.name}-edited")), "edited.cat")
        except McheckError:  # a recursion that is no longer monotone, a kind that no longer fits
            continue


# --- places -----------------------------------------------------------------------------------------------


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Op1):
        yield from _nodes(node.arg)
    elif isinstance(node, Op2):
        yield from _nodes(node.left)
        yield from _nodes(node.right)


def _bodies(statement: Statement) -> list[tuple[str, Node]]:
    if isinstance(statement, LetRec):
        return [(let.var.name, let.body) for let in statement.bindings]
    if isinstance(statement, Let):
        return [(statement.var.name, statement.body)]
    return [(statement.name, statement.body)]


def _places(model: Model, wanted: Callable[[Node], bool]) -> list[tuple[int, int, str, Node]]:
    """(statement, number in it, name of the definition, node) of the nodes that are wanted."""
    found = []
    for k, statement in enumerate(model.statements):
        number = 0
        for name, body in _bodies(statement):
            for node in _nodes(body):
                if wanted(node):
                    found.append((k, number, name, node))
                number += 1
    return found


def _put(model: Model, statement: int, number: int, new: Node) -> Model:
    """The model with another node in one place."""
    counter = [0]

    def walk(node: Node) -> Node:
        here = counter[0]
        counter[0] += 1
        if isinstance(node, Op1):
            rebuilt: Node = replace(node, arg=walk(node.arg))
        elif isinstance(node, Op2):
            left = walk(node.left)
            rebuilt = replace(node, left=left, right=walk(node.right))
        else:
            rebuilt = node
        return new if here == number else rebuilt

    statements = list(model.statements)
    statements[statement] = _mapped(statements[statement], walk)
    return replace(model, statements=tuple(statements))


def _mapped(statement: Statement, rewrite: Rewrite) -> Statement:
    if isinstance(statement, LetRec):
        return LetRec(tuple(replace(let, body=rewrite(let.body)) for let in statement.bindings))
    return replace(statement, body=rewrite(statement.body))


# --- edits that change the meaning --------------------------------------------------------------------------


def drop_alternative(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop one side of a union."""
    return _replaced(random, model, "alternative dropped", "|", lambda n: random.choice((n.left, n.right)))


def drop_conjunct(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop one side of an intersection."""
    return _replaced(random, model, "conjunct dropped", "&", lambda n: random.choice((n.left, n.right)))


def drop_difference(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop the subtrahend of a difference."""
    return _replaced(random, model, "difference dropped", "\\", lambda n: n.left)


def drop_step(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop one side of a composition."""
    return _replaced(random, model, "step dropped", ";", lambda n: random.choice((n.left, n.right)))


def _replaced(
    random: Random, model: Model, what: str, op: str, choose: Callable[[Op2], Node]
) -> tuple[str, Model] | None:
    places = _places(model, lambda n: isinstance(n, Op2) and n.op == op)
    if not places:
        return None
    k, number, name, node = random.choice(places)
    assert isinstance(node, Op2)
    return f"{what} in {name}", _put(model, k, number, choose(node))


def drop_closure(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop a closure or an option."""
    places = _places(model, lambda n: isinstance(n, Op1) and n.op in ("+", "*", "?"))
    if not places:
        return None
    k, number, name, node = random.choice(places)
    assert isinstance(node, Op1)
    return f"'{node.op}' dropped in {name}", _put(model, k, number, node.arg)


def narrow(random: Random, model: Model) -> tuple[str, Model] | None:
    """A set or a relation is tested for one thing more."""
    places = _places(model, lambda n: isinstance(n, Base | Var))
    k, number, name, node = random.choice(places)
    assert isinstance(node, Base | Var)
    other = Base(random.choice(SETS if node.kind is Kind.SET else RELATIONS), node.kind)
    if other == node:
        return None
    op = random.choice(("&", "&", "\\"))
    return f"{node.name} {op} {other.name} in {name}", _put(model, k, number, Op2(op, node, other, node.kind))


def widen(random: Random, model: Model) -> tuple[str, Model] | None:
    """A set has one kind of member more."""
    places = _places(model, lambda n: isinstance(n, Base) and n.kind is Kind.SET)
    k, number, name, node = random.choice(places)
    assert isinstance(node, Base)
    other = Base(random.choice(SETS), node.kind)
    if other == node:
        return None
    return f"{node.name} | {other.name} in {name}", _put(model, k, number, Op2("|", node, other, node.kind))


def drop_check(random: Random, model: Model) -> tuple[str, Model] | None:
    """Drop an axiom or a flag."""
    k = random.choice([k for k, s in enumerate(model.statements) if isinstance(s, Check)])
    gone = model.statements[k]
    assert isinstance(gone, Check)
    return f"{gone.name} dropped", replace(model, statements=model.statements[:k] + model.statements[k + 1 :])


# --- edits that do not ------------------------------------------------------------------------------------------


def inline(random: Random, model: Model) -> tuple[str, Model] | None:
    """Inline a definition."""
    k = random.choice([k for k, s in enumerate(model.statements) if isinstance(s, Let)])
    gone = model.statements[k]
    assert isinstance(gone, Let)

    def walk(node: Node) -> Node:
        if isinstance(node, Var) and node.uid == gone.var.uid:
            return gone.body
        if isinstance(node, Op1):
            return replace(node, arg=walk(node.arg))
        if isinstance(node, Op2):
            return replace(node, left=walk(node.left), right=walk(node.right))
        return node

    rest = tuple(_mapped(s, walk) for s in model.statements[:k] + model.statements[k + 1 :])
    shows = tuple(s for s in model.shows if s != gone.var)
    return f"{gone.var.name} inlined", replace(model, statements=rest, shows=shows)


def rename(random: Random, model: Model) -> tuple[str, Model] | None:
    """Rename every definition."""

    def named(var: Var) -> Var:
        return replace(var, name=f"my-{var.uid}")

    def walk(node: Node) -> Node:
        if isinstance(node, Var):
            return named(node)
        if isinstance(node, Op1):
            return replace(node, arg=walk(node.arg))
        if isinstance(node, Op2):
            return replace(node, left=walk(node.left), right=walk(node.right))
        return node

    def changed(statement: Statement) -> Statement:
        if isinstance(statement, LetRec):
            return LetRec(tuple(Let(named(let.var), walk(let.body)) for let in statement.bindings))
        if isinstance(statement, Let):
            return Let(named(statement.var), walk(statement.body))
        return replace(statement, body=walk(statement.body))

    return "renamed", replace(model, statements=tuple(map(changed, model.statements)), shows=())


EDITS: Mapping[Edit, int] = {
    drop_alternative: 6,
    drop_conjunct: 5,
    drop_difference: 2,
    drop_step: 3,
    drop_closure: 1,
    narrow: 4,
    widen: 3,
    drop_check: 2,
    inline: 2,
    rename: 1,
}
"""Each with its weight."""
