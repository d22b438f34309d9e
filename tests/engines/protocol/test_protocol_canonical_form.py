"""The canonical form leaves nothing out that a later step may look at, and renames what a rotation renames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from mcheck.base.declared_state import (
    IN_OWNER,
    PLAIN,
    Copying,
    Naming,
    attributes_of,
    check_declared,
    declared_classes,
    named_attributes,
)
from mcheck.cat import load_model
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup, prepare
from mcheck.engines.protocol.operations.scheduler import execute, first_runnable
from mcheck.engines.protocol.reduction.agent_forms import build_agent_form
from mcheck.engines.protocol.reduction.canonical_form import normalise_window
from mcheck.engines.protocol.reduction.derived_forms import LIVE_OPERATIONS, NAMES, former_of
from mcheck.engines.protocol.reduction.form_builder import FormBuilder
from mcheck.engines.protocol.state import naming as by
from mcheck.engines.protocol.state.address_names import AddressNames
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.cyclic_names import UNROTATED, Ring, RotatedNames, Rotation
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.events.thread_state import REGISTERS, State
from mcheck.frontend.litmus import parse
from tests.engines.protocol.partitions import settled_partition
from tests.engines.protocol.unbounded import GUARDED, PING_PONG, TWO_PIPELINES, gemm, ring

RING = ring(2)
PROGRAMS = {"ring": RING, "ping-pong": PING_PONG, "attention": TWO_PIPELINES, "gemm": gemm(), **GUARDED}
BY_BUILDER = {
    by.AGENTS, by.PLACE, by.LANE_STATES, REGISTERS, by.RELATION, by.EVENT_SETS, by.EDGES, IN_OWNER, PLAIN,
}  # fmt: skip
"""Kinds of names that the builders themselves give."""


class Enough(Exception):
    """The execution has been followed far enough."""


def prepared(text: str) -> Setup:
    whole = parse(text, "program.litmus", every=True)
    assert whole.instance is not None
    program, model = whole.instance(12), load_model("ptx-9.0")
    return prepare(program, settled_partition(whole.instance(2), model), model, "ptx", 2, lambda: None)


def executed(text: str, steps: int) -> Machine:
    """An execution after some steps, ready for a form."""
    seen: list[Machine] = []

    def before(m: Machine, _: Agent) -> None:
        seen[:] = [m]
        if len(m.trace) >= steps:
            raise Enough

    with suppress(Enough):
        execute(prepared(text), before_step=before, choose_agent=first_runnable)
    normalise_window(seen[0])
    return seen[0]


def builder(m: Machine, turned: RotatedNames = UNROTATED, kinds: dict[object, int] | None = None) -> FormBuilder:
    kinds = {} if kinds is None else kinds
    return FormBuilder(m, m.setup, kinds, AddressNames((), turned), lambda a: a.pc, contents=True)


def states_of(root: Machine) -> Iterator[Any]:
    """The states of declared classes that a machine holds."""
    seen: set[int] = set()
    todo: list[object] = [root]
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if type(x) in declared_classes():
            yield x
            todo += [getattr(x, name) for name in attributes_of(type(x))]
        elif isinstance(x, dict):
            todo += x.values()
        elif isinstance(x, list | tuple | set | deque):
            todo += x


def another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int():
            return value + 97
        case str():
            return f"{value}, changed"
    return "another", value


def plain_attributes() -> Iterator[tuple[type[Any], str]]:
    return ((cls, name) for cls in declared_classes() for name, naming in named_attributes(cls) if naming == PLAIN)


def test_an_attribute_that_is_not_declared_is_noticed() -> None:
    m = executed(RING, 20)
    check_declared(m)
    check_declared(m.window)
    m.another = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="another"):
        check_declared(m)


def test_every_kind_of_name_has_a_function_and_a_use() -> None:
    used = {naming for cls in declared_classes() for _, naming in named_attributes(cls)}
    assert used - BY_BUILDER == NAMES.keys()
    assert used > BY_BUILDER


def test_every_attribute_with_operations_tells_which_of_them_are_live() -> None:
    """Times are compared with the live operations, so none may be missing."""

    def holds_operations(copied: Copying) -> bool:
        return copied.state == "SyncOperation" or any(map(holds_operations, copied.parts))

    for cls in declared_classes():
        for name, attribute in attributes_of(cls).items():
            if cls is not SyncOperation and isinstance(attribute.named, Naming) and holds_operations(attribute.copied):
                assert attribute.named in LIVE_OPERATIONS, (cls, name)


def test_a_form_tells_every_value_that_names_itself() -> None:
    m = executed(RING, 40)
    b = builder(m)
    states = {type(x): x for x in states_of(m)}
    told = set()
    for cls, name in plain_attributes():
        if cls in states and cls is not State:
            x = states[cls]
            former = former_of(
                cls, frozenset((by.AGENTS, by.PLACE, by.LANE_STATES, by.EDGES, by.RELATION, by.EVENT_SETS))
            )
            context = 0 if cls is SyncOperation else None
            maker = b.names if cls.__name__ in ("Entry", "Window") else b
            before, value = former(maker, x, context), getattr(x, name)
            setattr(x, name, another(value))
            assert former(maker, x, context) != before, (cls, name)
            setattr(x, name, value)
            told.add(cls)
    assert told > {Machine, Agent, Mbarrier, SyncOperation}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_no_value_that_names_itself_is_an_address(text: str) -> None:
    """A rotation moves addresses, so their names have to depend on it."""
    m = executed(text, 60)
    spans = [(i.base, i.base + i.object.size) for i in m.program.memory.instances]

    def addresses_in(x: object) -> bool:
        if isinstance(x, int):
            return any(low <= x < high for low, high in spans)
        return isinstance(x, tuple | list | set | frozenset) and any(map(addresses_in, x))

    plain = set(plain_attributes())
    for x in states_of(m):
        for name in attributes_of(type(x)):
            if (type(x), name) in plain:
                assert not addresses_in(getattr(x, name)), (type(x), name)


def test_only_names_that_are_said_to_be_rotated_depend_on_the_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    m = executed(RING, 60)
    full, empty, buf = (
        next(i for i in m.program.memory.instances if i.object.name == n) for n in ("full", "empty", "buf")
    )
    rings = [Ring(i.base, i.object.size, i.object.size // 2) for i in (full, empty, buf)]
    rotation = Rotation(tuple(sorted(rings, key=lambda x: x.low)), frozenset((full.base, empty.base)))
    found: dict[object, object] = {}
    changed: set[Naming] = set()
    kinds: dict[object, int] = {}

    def watched(naming: Naming) -> Any:
        function = NAMES[naming]

        def name(b: object, value: object, owner: object, context: object) -> object:
            out = function(b, value, owner, context)
            which = naming, id(owner), id(value), context if isinstance(context, int) else None
            if found.setdefault(which, out) != out:
                changed.add(naming)
            return out

        return name

    for naming in list(NAMES):
        monkeypatch.setitem(NAMES, naming, watched(naming))
    for cache in ("_FORMERS", "INLINE"):
        monkeypatch.setattr(f"mcheck.engines.protocol.reduction.derived_forms.{cache}", {})
    for turned in (UNROTATED, RotatedNames(rotation, 1)):
        b = builder(m, turned, kinds)
        former_of(Machine, frozenset((by.AGENTS,)))(b, m, None)
        for agent in m.agents:
            build_agent_form(b, agent)
    assert {by.ADDRESS, by.MBARRIER_STATE, by.HISTORIES, by.CLOCK_OBJECTS} <= changed
    assert all(naming.rotated for naming in changed), changed
