"""Laws of the algebra: the reference evaluator obeys them; folding and printing keep the value of an expression."""

from hypothesis import given
from hypothesis import strategies as st

from mcheck.cat import parse_model
from mcheck.cat.ast import Base, Check, Empty, Kind, Node, Op1, Op2
from mcheck.cat.fold import binary, unary
from tests.cat.expressions import expressions
from tests.cat.pretty import show
from tests.cat.reference import Reference
from tests.samples import examples

SIZE = 4

events = range(SIZE)
some_set = st.frozensets(st.sampled_from(events))
some_relation = st.frozensets(st.tuples(st.sampled_from(events), st.sampled_from(events)))
structures = st.builds(
    lambda sets, relations: Reference(events, {**dict(zip("WRF", sets, strict=True)), **relations}),
    st.tuples(some_set, some_set, some_set),
    st.fixed_dictionaries({"po": some_relation, "rf": some_relation, "co": some_relation}),
)


def folded(node: Node) -> Node:
    if isinstance(node, Op1):
        return unary(node.op, folded(node.arg))
    if isinstance(node, Op2):
        return binary(node.op, folded(node.left), folded(node.right))
    return node


@examples(150)
@given(expressions(), structures)
def test_folding_keeps_the_value(node: Node, structure: Reference) -> None:
    assert structure.value(folded(node)) == structure.value(node)


@examples(150)
@given(expressions())
def test_folding_leaves_no_empty_part(node: Node) -> None:
    def parts(inner: Node) -> list[Node]:
        if isinstance(inner, Op1):
            return [inner.arg, *parts(inner.arg)]
        if isinstance(inner, Op2):
            return [inner.left, inner.right, *parts(inner.left), *parts(inner.right)]
        return []

    assert not any(isinstance(part, Empty) for part in parts(folded(node)))


@examples(150)
@given(expressions())
def test_printing_and_parsing_gives_the_same_tree(node: Node) -> None:
    short = folded(node)
    (check,) = parse_model(f"empty {show(short)} as E", "law.cat").statements
    assert isinstance(check, Check)
    assert check.body == short or (isinstance(short, Empty) and isinstance(check.body, Empty))


@examples(150)
@given(expressions(), structures)
def test_unfolded_text_means_the_same(node: Node, structure: Reference) -> None:
    """A union with a name gives a kind to texts such as ``0``, which have none."""
    name = Base("W", Kind.SET) if node.kind is Kind.SET else Base("po", Kind.REL)
    (check,) = parse_model(f"empty ({show(node)}) | {name.name} as E", "law.cat").statements
    assert isinstance(check, Check)
    assert structure.value(check.body) == structure.value(Op2("|", node, name, node.kind))


LAWS = [
    ("(po; rf); co", "po; (rf; co)"),
    ("po; (rf | co)", "(po; rf) | (po; co)"),
    ("(po | rf)^-1", "po^-1 | rf^-1"),
    ("(po; rf)^-1", "rf^-1; po^-1"),
    ("po+", "po; po*"),
    ("po*", "po+ | id"),
    ("po*", "(po?)+"),
    ("po?", "po | id"),
    ("(po+)^-1", "(po^-1)+"),
    ("po+; po+ | po", "po+"),
    ("[W]; po; [R]", "po & (W * R)"),
    ("[W]; po", "po & (W * _)"),
    ("po \\ rf", "po & ~rf"),
    ("~(po | rf)", "~po & ~rf"),
    ("~(po & rf)", "~po | ~rf"),
    ("~(W * R)", "(~W * _) | (_ * ~R)"),
    ("~(W | R)", "~W & ~R"),
    ("domain(po)", "range(po^-1)"),
    ("domain(po; rf)", "domain(po; [domain(rf)])"),
    ("[domain(po)]", "(po; po^-1) & id"),
    ("range(po | rf)", "range(po) | range(rf)"),
    ("W * (R | F)", "(W * R) | (W * F)"),
    ("(po | rf)+", "po+ | (po*; rf)+; po*"),
    ("fencerel(F)", "po; [F]; po"),
    ("let rec r = po | (r; r) r", "po+"),
    ("let rec r = [W] | (r; po) r", "[W]; po*"),
    ("let rec s = W | range([s]; po) s", "range([W]; po*)"),
    ("let rec a = po | (b; rf) and b = a | (b; co) a", "(po; (co*; rf)*)"),
]


@examples(30)
@given(structures)
def test_laws(structure: Reference) -> None:
    for left, right in LAWS:
        assert value(left, structure) == value(right, structure), f"{left}  =  {right}"


@examples(30)
@given(structures)
def test_tests_agree(structure: Reference) -> None:
    answers = structure.run(
        parse_model(
            "acyclic po irreflexive po+ empty (po+ & id) ~acyclic po ~empty (po+ & id) flag ~empty po", "law.cat"
        )
    )
    holds = [answer for _, answer in answers]
    assert holds[0] == holds[1] == holds[2] == (not holds[3]) == (not holds[4])
    assert structure.consistent(parse_model("acyclic po flag ~empty po", "law.cat")) == holds[0]


def value(text: str, structure: Reference) -> object:
    """The value of an expression, or of the last name of ``let rec ... name``."""
    definition, _, name = text.rpartition(" ")
    model = parse_model(f"{definition} empty {name}" if text.startswith("let") else f"empty {text}", "law.cat")
    structure.run(model)
    check = model.statements[-1]
    assert isinstance(check, Check)
    return structure.value(check.body)
