"""Sets of sets and sets of relations, as far as models can use them.

An engine evaluates sets of events and relations. herd's models also list the total orders of the writes, location by
location, and go on ``with co from`` one of them: which is what an execution here supplies anyway. So that list is kept
as what it says (``Orders``) and never written out. The functions that make it are told by their definitions, which
``known.cat`` has in words of its own; other functions over sets of sets are refused where they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mcheck.cat.ast import Base, Empty, Node, Op2, Var
from mcheck.cat.fold import NO_REL, NO_SET, REL, SET, binary
from mcheck.cat.parser import parse
from mcheck.cat.scanner import Source
from mcheck.cat.scope import ZERO, Classes, Entry, Families, Items, Orders, Primitive, words_of_kind
from mcheck.cat.syntax import Binary, Binding, Call, Expr, Fun, LetIn, LetStatement, Match, Name, Unary, Zero
from mcheck.cat.syntax import Items as RawItems

Canonical = tuple[object, ...]

WRITES = Base("W", SET)
INITIAL = Base("IW", SET)
LOC = Base("loc", REL)
CO = Base("co", REL)


def known_function(binding: Binding) -> Primitive | None:
    """The function of ``known.cat`` that has this definition up to the names in it."""
    if not isinstance(binding.body, LetIn) or not binding.body.recursive:
        return None
    name = _known().get(_definition(binding))
    return Primitive(name) if name else None


@lru_cache(maxsize=1)
def _known() -> Mapping[Canonical, str]:
    path = Path(__file__).resolve().parent / "known.cat"
    statements = parse(Source(str(path), path.read_text(encoding="utf-8"))).statements
    bindings = (
        binding for statement in statements if isinstance(statement, LetStatement) for binding in statement.bindings
    )
    return {_definition(binding): binding.name.text for binding in bindings}


def _definition(binding: Binding) -> Canonical:
    return _lambda(binding.params or (), binding.body, {})


def _lambda(params: tuple[Name, ...], body: Expr, bound: Mapping[str, int]) -> Canonical:
    inner = _binding(bound, params)
    return ("fun", len(params), _canonical(body, inner))


def _binding(bound: Mapping[str, int], names: tuple[Name, ...]) -> Mapping[str, int]:
    """``bound`` and ``names``, each with a number that nothing around it has."""
    first = max(bound.values(), default=-1) + 1
    return {**bound, **{name.text: first + k for k, name in enumerate(names)}}


def _canonical(raw: Expr, bound: Mapping[str, int]) -> Canonical:
    """``raw`` with numbers for the names that it binds."""
    match raw:
        case Name():
            return ("name", bound.get(raw.text, raw.text))
        case Zero():
            return ("0",)
        case Unary():
            return (raw.op, _canonical(raw.arg, bound))
        case Binary():
            return (raw.op, _canonical(raw.left, bound), _canonical(raw.right, bound))
        case Call():
            return ("call", _canonical(raw.function, bound), *(_canonical(arg, bound) for arg in raw.args))
        case RawItems():
            return ("{}" if raw.braces else "()", *(_canonical(item, bound) for item in raw.items))
        case Fun():
            return _lambda(raw.params, raw.body, bound)
        case Match():
            some = _binding(bound, (raw.element, raw.rest))
            subject, empty = _canonical(raw.subject, bound), _canonical(raw.empty, bound)
            return ("match", subject, empty, _canonical(raw.body, some))
        case LetIn():
            inner = _binding(bound, tuple(name for binding in raw.bindings for name in binding.names))
            outer = inner if raw.recursive else bound
            lets = tuple(_lambda(binding.params or (), binding.body, outer) for binding in raw.bindings)
            return ("let", raw.recursive, lets, _canonical(raw.body, inner))
    return ("other", id(raw))  # equal to nothing


def apply_primitive(name: str, args: tuple[Entry, ...]) -> Entry | None:
    """What a primitive gives for its arguments, ``None`` where that cannot be said."""
    match name, args:
        case "classes-loc", (of,) if isinstance(of, Node):
            of = words_of_kind(of, SET)
            return ZERO if isinstance(of, Empty) else Classes(of) if of.kind is SET else None
        case "linearisations", (of, order) if isinstance(of, Node) and isinstance(order, Node):
            return Items(braces=True, items=(NO_REL,)) if words_of_kind(of, SET) == NO_SET else None
        case "orders-of-classes", (order, classes):
            if classes is ZERO:
                return ZERO
            if isinstance(classes, Classes) and isinstance(order, Node) and words_of_kind(order, REL).kind is REL:
                return Families(classes.of, words_of_kind(order, REL))
        case "unions-of-one-each", (families,):
            if families is ZERO:
                return Items(braces=True, items=(NO_REL,))
            if isinstance(families, Families):
                return Orders(families.of, families.order)
    return None


def beyond_co(order: Node, bodies: Mapping[int, Node], final: Entry | None) -> Node:
    """The part of ``order`` that a total ``co`` need not have anyway, among writes of one location.

    A co puts the initial write first; ``final`` are the writes that it has last. ``bodies`` are those of variables.
    """

    def rest(node: Node) -> Node:
        if isinstance(node, Empty) or node == CO or _is_end(node, final):
            return NO_REL
        if isinstance(node, Var) and node.uid in bodies:
            inner = rest(bodies[node.uid])
            return node if inner == bodies[node.uid] else inner
        if isinstance(node, Op2) and node.op == "|":
            return binary("|", rest(node.left), rest(node.right))
        if isinstance(node, Op2) and node.op == "&":
            return binary("&", rest(node.left), rest(node.right))
        return node

    return rest(order)


def _is_end(node: Node, final: Entry | None) -> bool:
    """``IW * (W \\ IW)`` or ``(W \\ final) * final``."""
    if not isinstance(node, Op2) or node.op != "*":
        return False
    return (node.left, node.right) == (INITIAL, Op2("\\", WRITES, INITIAL, SET)) or (
        isinstance(final, Var) and (node.left, node.right) == (Op2("\\", WRITES, final, SET), final)
    )
