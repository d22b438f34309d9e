"""The engine's evaluator, which computes many executions at once, against the reference, which computes just one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from mcheck.cat import parse_model
from mcheck.cat.algebra.batch import Evaluation, Masks, Plan
from mcheck.cat.algebra.bits import Rows, apply_operation, closure, empty
from mcheck.cat.algebra.bounds import Bounds, bound_nodes, compute_bounds
from mcheck.cat.algebra.tape import compile_model
from mcheck.cat.ast import Base, Check, Kind, Let, LetRec, Model, Node, Op2, Var
from tests.cat.expressions import expressions, nodes
from tests.cat.reference import Pairs, Reference
from tests.samples import examples

SIZE = 4
UNKNOWN = ("rf", "co")

events = range(SIZE)
some_set = st.frozensets(st.sampled_from(events))
some_relation = st.frozensets(st.tuples(st.sampled_from(events), st.sampled_from(events)))


def closed(relation: Pairs) -> Pairs:
    while True:
        more = relation | {(a, d) for a, b in relation for c, d in relation if b == c}
        if more == relation:
            return relation
        relation = frozenset(more)


candidate = st.fixed_dictionaries({"rf": some_relation, "co": some_relation.map(closed)})
"""What one execution chooses; the engine keeps co transitive."""

batches = st.tuples(
    st.fixed_dictionaries({"W": some_set, "R": some_set, "F": some_set}),
    some_relation,
    st.lists(candidate, min_size=1, max_size=4),
    st.fixed_dictionaries({"rf": some_relation, "co": some_relation}),
)
"""Sets, po, the candidates, and pairs that the static upper bounds have beyond the candidates."""

Batch = tuple[dict[str, frozenset[int]], Pairs, list[dict[str, Pairs]], dict[str, Pairs]]


def rows(pairs: Iterable[tuple[int, int]]) -> Rows:
    result = [0] * SIZE
    for a, b in pairs:
        result[a] |= 1 << b
    return result


def evaluation(model: Model, batch: Batch) -> Evaluation:
    """The engine's view of the batch, as its solver sets it up."""
    sets, po, candidates, extra = batch
    known = {name: rows((event, event) for event in value) for name, value in sets.items()}
    known |= {"po": rows(po), "_": rows((e, e) for e in events), "id": rows((e, e) for e in events)}
    low = {name: frozenset.intersection(*(c[name] for c in candidates)) for name in UNKNOWN}
    high = {name: frozenset.union(extra[name], *(c[name] for c in candidates)) for name in UNKNOWN}
    masks: dict[str, Masks] = {}
    for name in UNKNOWN:
        masks[name] = {}
        for number, chosen in enumerate(candidates):
            for a, b in chosen[name] - low[name]:
                row = masks[name].setdefault(a, {})
                row[b] = row.get(b, 0) | 1 << number

    def bases(name: str) -> tuple[Rows, Rows]:
        return (known[name], known[name]) if name in known else (rows(low[name]), rows(high[name]))

    tape = compile_model(model)
    bounds = compute_bounds(tape, SIZE, bases)
    return Evaluation(Plan(tape, bounds, [axiom.node for axiom in tape.checks]), (1 << len(candidates)) - 1, masks)


def reference(batch: Batch, number: int) -> Reference:
    sets, po, candidates, _ = batch
    return Reference(events, {**sets, "po": po, **candidates[number]})


def engine_value(found: Evaluation, node: int, number: int) -> Pairs:
    """A node's pairs in one candidate, sets on the diagonal."""
    low = found.plan.low[node]
    pairs = {(a, b) for a in events for b in events if low[a] >> b & 1}
    pairs |= {(a, b) for a, row in found.get(node).items() for b, mask in row.items() if mask >> number & 1}
    return frozenset(pairs)


def flagged(node: Node) -> Model:
    """A model that tests ``node`` for emptiness, so worded that it is no lower bound of co."""
    return Model("oracle", "oracle.cat", (Check("empty", False, node, "E", flag=True),))


def test_sets_and_closures_stand_alone_in_an_intersection() -> None:
    tape = compile_model(parse_model('"alone"\nempty ((po+ | rf)? & loc) as E', "alone.cat"))
    code, found = tape.code, tape.code[tape.checks[0].node]
    assert (found.op, code[found.a].op, code[code[found.a].a].name) == ("or", "and", "id")
    rest = code[found.b]
    assert rest.op == "or"
    assert {code[code[n].a].op for n in (rest.a, rest.b)} == {"plus", "base"}


def test_the_sets_of_a_union_stand_together() -> None:
    tape = compile_model(parse_model('"together"\nempty (([W] | po) | (rf | [R])) as E', "together.cat"))
    code, found = tape.code, tape.code[tape.checks[0].node]
    members = [{code[k].name for k in (code[n].a, code[n].b)} for n in (found.a, found.b)]
    assert members == [{"W", "R"}, {"po", "rf"}]


@examples(150)
@given(expressions(), batches)
def test_an_expression_has_the_same_value(node: Node, batch: Batch) -> None:
    found = evaluation(flagged(node), batch)
    (axiom,) = found.plan.tape.checks
    for number in range(len(batch[2])):
        value = reference(batch, number).value(node)
        pairs = value if node.kind is Kind.REL else frozenset((event, event) for event in value)
        assert engine_value(found, axiom.node, number) == pairs


def test_a_recursion_computes_again_what_depends_on_it() -> None:
    """A chain of pairs takes rounds; what the recursion starts from is computed in the first one alone."""
    model = parse_model('"t"\nlet rec path = (po; rf) | path; path\nempty path as E\n', "t.cat")
    tape, zero = compile_model(model), empty(8)
    bounds, calls = Bounds([zero] * len(tape.code), [zero] * len(tape.code)), Counter[int]()
    chain = [1 << k + 1 for k in range(7)] + [0]

    def node(k: int) -> None:
        calls[k] += 1
        i = tape.code[k]
        given = chain if i.op == "base" else apply_operation(i.op, bounds.high[i.a], bounds.high[i.b], zero)
        bounds.low[k] = bounds.high[k] = given

    bound_nodes(tape, bounds, node, zero)
    (axiom,) = tape.checks
    assert bounds.high[axiom.node] == closure(apply_operation("seq", chain, chain, zero))
    start, end, _ = tape.groups[0][-1]
    again = {tape.code[k].op for k in range(start, end) if calls[k] > 1}
    once = {tape.code[k].op for k in range(start, end) if calls[k] == 1}
    assert again == {"or", "seq"}
    assert once == {"base", "seq"}


@examples(80)
@given(nodes(Kind.REL, 3), st.sampled_from(["acyclic", "irreflexive", "empty"]), st.booleans(), batches)
def test_a_test_holds_in_the_same_executions(node: Node, test: str, negated: bool, batch: Batch) -> None:
    check = Check(test, negated, node, "T", flag=True)
    found = evaluation(Model("oracle", "oracle.cat", (check,)), batch)
    (axiom,) = found.plan.tape.checks
    violated = found.violated(axiom.test, axiom.node)
    for number in range(len(batch[2])):
        assert reference(batch, number).holds(check) == ((violated >> number & 1 == 0) != negated)


@examples(80)
@given(nodes(Kind.REL, 2, positive=True), nodes(Kind.REL, 2, positive=True), batches)
def test_a_recursive_definition_has_the_same_least_solution(start: Node, step: Node, batch: Batch) -> None:
    var = Var(0, "r", Kind.REL)
    other = Var(1, "s", Kind.REL)
    body = Op2("|", start, Op2(";", var, other, Kind.REL), Kind.REL)
    second = Op2("|", step, Op2("&", var, Op2(";", other, start, Kind.REL), Kind.REL), Kind.REL)
    group = LetRec((Let(var, body), Let(other, second)))
    twice = Let(Var(2, "t", Kind.REL), Op2("\\", var, Base("co", Kind.REL), Kind.REL))
    model = Model("oracle", "oracle.cat", (group, twice, Check("empty", False, twice.var, "E", flag=True)))
    found = evaluation(model, batch)
    (axiom,) = found.plan.tape.checks
    for number in range(len(batch[2])):
        single = reference(batch, number)
        single.run(model)
        assert engine_value(found, axiom.node, number) == single.values[2]


@examples(150)
@given(nodes(Kind.REL, 4, positive=True), batches, some_relation)
def test_what_the_reverse_pass_rules_out_would_do_harm(node: Node, batch: Batch, unwanted: Pairs) -> None:
    """Each pair that it names, added to its relation, puts an unwanted pair into the value of the expression."""
    found = evaluation(flagged(node), batch)
    (axiom,) = found.plan.tape.checks
    if axiom.node not in found.plan.order:
        return
    seeds: Masks = {}
    for number in range(len(batch[2])):
        for a, b in unwanted - engine_value(found, axiom.node, number):
            if found.plan.high[axiom.node][a] >> b & 1:
                row = seeds.setdefault(a, {})
                row[b] = row.get(b, 0) | 1 << number
    for name, masks in found.backward({axiom.node: seeds}, frozenset(UNKNOWN)).items():
        for a, row in masks.items():
            for b, mask in row.items():
                for number, chosen in enumerate(batch[2]):
                    if not mask >> number & 1:
                        continue
                    longer = chosen[name] | {(a, b)}
                    changed = {**chosen, name: closed(longer) if name == "co" else longer}
                    single = Reference(events, {**batch[0], "po": batch[1], **changed})
                    harm = {pair for pair in single.pairs(node) if seeds.get(pair[0], {}).get(pair[1], 0) >> number & 1}
                    assert harm, f"{name} {(a, b)} does no harm"
