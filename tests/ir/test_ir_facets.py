"""The facets that operations declare, against the events that they have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from mcheck.cat.tags import Tag
from mcheck.events.emit import HANDLERS, import_emitters
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Facets, Op
from mcheck.ir.resolve import expressions
from mcheck.semantics.terms import Term, reads_of
from tests.ir.operation_samples import BAR, SAMPLES, SIZE, TENSOR, S, bulk, run

KINDS = sorted(
    (k for k in vars(ops).values() if isinstance(k, type) and issubclass(k, Op) and "facets" in vars(k)), key=str
)
ABSTRACT = {Op, ops.ScalarAccess, ops.ScalarRead, ops.ScalarWrite}

WITHOUT_HANDLER = {ops.Label, ops.Branch, ops.Exit, ops.Trap, ops.UnknownContinuation, ops.AssumedValue}
"""Control flow, which has no events."""


def observed(code: tuple[Op, ...]) -> Iterator[Facets]:
    """The facets that a sample shows, each by itself."""
    op = code[-1]
    states, events = run(code)
    reads = {e.uid: e for e in events if Tag.R in e.tags}
    writes = [e for e in events if Tag.W in e.tags]
    yield Facets(blocks=any(s.ended == "stuck" for s in states))
    if isinstance(op, ops.Await):  # the rest is for what it repeats
        return
    if getattr(op, "reduce", None) is None:
        yield Facets(reads=operands_at(op, {e.virtual for e in reads.values()}))
        yield Facets(writes=operands_at(op, {e.virtual for e in writes}))
    moved = ((reads[uid], e) for e in writes for uid in reads_of(e.value) if uid in reads)
    yield Facets(copies=any(source.virtual != target.virtual for source, target in moved))
    learnt = {uid for e in events if Tag.R in e.tags or Tag.WAIT in e.tags for uid in [e.uid]}
    registers: list[Term] = [value for s in states if not s.ended for value in s.registers.values()]
    yield Facets(observes=any(learnt & reads_of(value) for value in registers))
    steps = [e.mbarrier for e in events if e.mbarrier is not None]
    for step in steps:
        (name,) = operands_at(op, {step.address})
        yield Facets(mbarrier=name, signals=step.kind not in ("init", "inval", "wait"))
    for event in events:
        yield Facets(
            synchronises=Tag.B in event.tags, converges=Tag.MET in event.tags, asynchronous=Tag.ISSUE in event.tags
        )


def operands_at(op: Op, places: set[int]) -> tuple[str, ...]:
    """The operands that name these places; the map of a tensor copy names the tensor."""
    named = [(name, expr.value) for name, expr in expressions(op) if isinstance(expr, Const)]
    if isinstance(op, ops.TensorCopy):
        named.append(("tensor_map", TENSOR.value))
    return tuple(name for name, value in named if value in places)


def join(found: list[Facets]) -> Facets:
    """The facets that some of them have."""
    merged: dict[str, object] = {}
    for facet in fields(Facets):
        values = [getattr(f, facet.name) for f in found]
        if isinstance(facet.default, tuple):
            merged[facet.name] = tuple(sorted({name for names in values for name in names}))
        else:
            merged[facet.name] = next(filter(None, values), facet.default)
    return Facets(**merged)  # type: ignore[arg-type]


def test_every_class_of_operations_declares_its_facets() -> None:
    concrete = [k for k in vars(ops).values() if isinstance(k, type) and issubclass(k, Op) and k not in ABSTRACT]
    assert len(concrete) > 30
    assert [kind.__name__ for kind in concrete if "facets" not in vars(kind)] == []
    assert not any("facets" in vars(kind) for kind in ABSTRACT)


def test_there_is_a_sample_of_every_class() -> None:
    assert {type(code[-1]) for code in SAMPLES} == set(KINDS) - WITHOUT_HANDLER
    import_emitters()
    assert not WITHOUT_HANDLER & set(HANDLERS)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in WITHOUT_HANDLER], ids=lambda k: k.__name__)
def test_facets_are_what_the_events_show(kind: type[Op]) -> None:
    shown = join([f for code in SAMPLES if type(code[-1]) is kind for f in observed(code)])
    declared = replace(kind.facets, computes=False)
    assert join([declared]) == shown


@pytest.mark.parametrize("kind", sorted(WITHOUT_HANDLER, key=str), ids=lambda k: k.__name__)
def test_control_flow_has_no_facets_that_events_show(kind: type[Op]) -> None:
    assert replace(kind.facets, computes=False) == Facets()


def test_what_computes_has_no_events() -> None:
    for code in SAMPLES:
        if code[-1].facets.computes:
            states, events = run(code)
            assert not events
            assert len(states) == 1


def test_scalar_accesses_are_those_that_may_be_strong_and_synchronous() -> None:
    strong = {Tag.RLX, Tag.ACQ, Tag.REL}
    for tag, base in ((Tag.R, ops.ScalarRead), (Tag.W, ops.ScalarWrite)):
        shown = {
            type(code[-1])
            for code in SAMPLES
            if not isinstance(code[-1], ops.Await)
            for event in run(code)[1]
            if tag in event.tags and event.order is not None and event.tags & strong
        }
        assert shown == {kind for kind in KINDS if issubclass(kind, base)}


def test_the_mbarrier_of_an_operation_is_the_operand_that_its_facets_name() -> None:
    assert ops.mbarrier_of(ops.MbarrierInval(address=BAR)) == BAR
    assert ops.mbarrier_of(bulk()) == BAR
    assert ops.mbarrier_of(bulk("add")) is None
    assert ops.mbarrier_of(ops.Fill(address=S, size=SIZE)) is None
