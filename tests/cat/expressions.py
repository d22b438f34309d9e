"""Hypothesis strategies for checked expressions, built with the plain constructors so that nothing is folded."""

from hypothesis import strategies as st

from mcheck.cat.ast import Base, Empty, Kind, Node, Op1, Op2

SETS = ("W", "R", "F", "_")
RELATIONS = ("po", "rf", "co", "id")


def nodes(kind: Kind, depth: int, *, positive: bool = False) -> st.SearchStrategy[Node]:
    """Trees of at most ``depth`` operators above a name; ``positive`` ones grow with every relation in them."""
    if depth == 0:
        names = SETS if kind is Kind.SET else RELATIONS
        leaves: st.SearchStrategy[Node] = st.sampled_from([Base(name, kind) for name in names])
        return leaves if positive else leaves | st.just(Empty(kind))
    same = st.deferred(lambda: nodes(kind, depth - 1, positive=positive))
    sets = st.deferred(lambda: nodes(Kind.SET, depth - 1, positive=positive))
    relations = st.deferred(lambda: nodes(Kind.REL, depth - 1, positive=positive))
    lattice = st.builds(lambda op, left, right: Op2(op, left, right, kind), st.sampled_from("|&"), same, same)
    result = same | lattice
    if not positive:
        result |= same.map(lambda arg: Op1("~", arg, kind))
        result |= st.builds(lambda left, right: Op2("\\", left, right, kind), same, same)
    if kind is Kind.SET:
        return result | st.builds(lambda op, arg: Op1(op, arg, kind), st.sampled_from(["domain", "range"]), relations)
    return (
        result
        | st.builds(lambda op, arg: Op1(op, arg, kind), st.sampled_from(["+", "*", "?", "^-1"]), relations)
        | sets.map(lambda arg: Op1("[]", arg, kind))
        | st.builds(lambda left, right: Op2(";", left, right, kind), relations, relations)
        | st.builds(lambda left, right: Op2("*", left, right, kind), sets, sets)
    )


def expressions(depth: int = 4) -> st.SearchStrategy[Node]:
    """Of either kind."""
    return nodes(Kind.REL, depth) | nodes(Kind.SET, depth)
