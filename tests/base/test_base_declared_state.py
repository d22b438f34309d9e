"""Declarations of mutable state: tables that are incomplete are refused, and copies are as the tables say."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import pytest

from mcheck.base import declared_state
from mcheck.base.declared_state import (
    ABSENT,
    PLAIN,
    REFERENCE,
    REMADE,
    SHALLOW,
    SHARED,
    VALUE,
    Attribute,
    Unnamed,
    check_declared,
    copier_of,
    declare_state,
    listed,
    mapped,
    named_attributes,
    optional,
    read_from,
    row,
    state,
    tupled,
)
from mcheck.base.records import dataclass

LEFT_OUT = Unnamed("nobody asks")


@dataclass(slots=True, eq=False)
class Leaf:
    number: int
    names: list[str] = field(default_factory=list)
    merged_into: Leaf | None = None

    @property
    def last(self) -> Leaf | None:
        leaf = self.merged_into
        while leaf is not None and leaf.merged_into is not None:
            leaf = leaf.merged_into
        return leaf


@dataclass(slots=True, eq=False)
class Tree:
    leaves: list[Leaf]
    pairs: tuple[Leaf, ...]
    groups: list[tuple[list[Leaf], int]]
    by_name: dict[str, list[Leaf]]
    parent: Tree | None
    waits_for: object
    watcher: object
    readers: object


class Plain:
    def __init__(self) -> None:
        self.number = 1


def attribute(copied: declared_state.Copying) -> Attribute:
    return Attribute(copied, LEFT_OUT)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DECLARED", "_BY_NAME", "_COPIERS", "_SCOPE"):
        monkeypatch.setattr(declared_state, name, dict(getattr(declared_state, name)))
    declare_state(
        Leaf,
        number=VALUE,
        names=attribute(SHALLOW),
        merged_into=attribute(read_from("last", state("Leaf"))),
    )
    leaves = listed(state("Leaf"))
    declare_state(
        Tree,
        leaves=attribute(leaves),
        pairs=attribute(tupled(state("Leaf"))),
        groups=attribute(listed(row(leaves, SHARED))),
        by_name=attribute(mapped(leaves)),
        parent=attribute(optional(state("Tree"))),
        waits_for=attribute(REFERENCE),
        watcher=attribute(ABSENT),
        readers=attribute(REMADE),
    )


def copied(tree: Tree) -> Tree:
    out: Tree = copier_of(Tree)(tree, {})
    return out


def test_aliases_and_circles_remain() -> None:
    a, b = Leaf(1, ["x"]), Leaf(2)
    tree = Tree([a, b], (b,), [([a], 7)], {"b": [b]}, None, b, object(), object())
    tree.parent = tree
    out = copied(tree)
    first, second = out.leaves
    assert out is not tree
    assert out.parent is out
    assert (first is a, second is b) == (False, False)
    assert (first.number, first.names, second.number) == (1, ["x"], 2)
    assert first.names is not a.names
    assert out.pairs == (second,)
    assert out.groups == [([first], 7)]
    assert out.by_name == {"b": [second]}
    assert out.waits_for is second


def test_what_is_not_copied_is_absent() -> None:
    out = copied(Tree([], (), [], {}, None, ["a list"], object(), object()))
    assert out.watcher is None
    assert not hasattr(out, "readers")
    assert out.waits_for == ["a list"]


def test_a_chain_is_copied_up_to_its_end() -> None:
    chain = Leaf(0)
    for number in range(1, 5000):
        chain = Leaf(number, merged_into=chain)
    last = copied(Tree([chain], (), [], {}, None, None, None, None)).leaves[0].merged_into
    assert last is not None
    assert (last.number, last.merged_into) == (0, None)


@pytest.mark.parametrize(
    "given", [{}, {"number": VALUE, "names": VALUE, "merged_into": VALUE, "more": VALUE}], ids=["missing", "additional"]
)
def test_a_table_has_all_fields_and_no_other(given: dict[str, Any]) -> None:
    @dataclass(slots=True)
    class Other:
        number: int
        names: list[str]
        merged_into: object

    with pytest.raises(TypeError, match="more" if given else "merged_into"):
        declare_state(Other, **given)


def test_two_classes_with_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two classes"):
        declare_state(Leaf)


def test_an_object_without_slots_is_checked_when_asked() -> None:
    declare_state(Plain, number=VALUE)
    one = Plain()
    check_declared(one)
    vars(one)["more"] = 2
    with pytest.raises(TypeError, match="more"):
        check_declared(one)


def test_attributes_with_a_name_are_listed_in_order() -> None:
    assert list(named_attributes(Leaf)) == [("number", PLAIN)]
    assert not list(named_attributes(Tree))
