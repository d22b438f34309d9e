"""Frozen data classes of ``mcheck.base.records`` beside those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from mcheck.base import records

Decorator = Callable[..., Callable[[type[Any]], type[Any]]]
LIBRARIES: tuple[Decorator, ...] = (dataclasses.dataclass, records.dataclass)


def shapes(made_by: Decorator) -> list[type[Any]]:
    """Classes with what mcheck's data classes have."""

    class Base:
        """Defaults, a class variable, a field that is not compared."""

        kind: ClassVar[int] = 3
        x: int
        y: list[int] = dataclasses.field(default_factory=list, hash=False)
        z: str = dataclasses.field(default="z", compare=False)

    base = made_by(frozen=True, slots=True)(Base)

    class Below(base):  # type: ignore[misc,valid-type]
        """Keywords, and fields that are no parameters."""

        w: int = 4
        made: tuple[int, ...] = dataclasses.field(default=(), init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", (self.w, self.x))

    class Own:  # noqa: PLW1641 - it gets one
        """Methods of its own."""

        x: int = 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    class Empty:
        """Nothing."""

    class Many(base):  # type: ignore[misc,valid-type]
        """More than are filled in one by one."""

        w: int = 4
        made: tuple[int, ...] = dataclasses.field(default=(), init=False)
        u: list[int] = dataclasses.field(default_factory=list, hash=False)
        v: int = dataclasses.field(default=0, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", (self.w, self.x))

    below = made_by(frozen=True, slots=True, kw_only=True)(Below)
    return [base, below, *(made_by(frozen=True, slots=True)(c) for c in (Own, Empty, Many))]


def outcome(action: Callable[..., object], *args: object, **kwargs: object) -> object:
    """What a call gives, or the kind of its error and what it says."""
    try:
        return action(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((1,), {}), ((1, [2]), {}), ((1, [2], "q"), {}), ((1, [2], "q", 5), {}), ((1,), {"w": 7}),
    ((), {"x": 1, "w": 2}), ((1,), {"x": 1}), ((1,), {"made": ()}), ((), {"y": [], "z": "a", "x": 0}),
]  # fmt: skip


def test_classes_are_those_of_the_standard_library() -> None:
    for theirs, ours in zip(*map(shapes, LIBRARIES), strict=True):
        for told in (dataclasses.fields, lambda c: c.__slots__, lambda c: c.__match_args__, lambda c: c.__doc__):
            assert str(told(ours)) == str(told(theirs))
        parameters = [
            [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(c).parameters.values()]
            for c in (theirs, ours)
        ]
        assert parameters[0] == parameters[1]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_instances_are_those_of_the_standard_library(call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, kwargs = call
    for theirs, ours in zip(*map(shapes, LIBRARIES), strict=True):
        a, b = (outcome(c, *args, **kwargs) for c in (theirs, ours))
        assert repr(a) == repr(b)
        if isinstance(a, tuple):
            continue
        assert outcome(hash, a) == outcome(hash, b)
        assert not hasattr(b, "__dict__")
        for other_args, other_kwargs in CALLS:
            c, d = (outcome(t, *other_args, **other_kwargs) for t in (theirs, ours))
            assert (a == c) == (b == d)
        for change in ("x", "w", "made"):
            c, d = (outcome(dataclasses.replace, i, **{change: 9}) for i in (a, b))
            assert repr(c) == repr(d)


@pytest.mark.parametrize("name", ["x", "made", "unheard"])
def test_nothing_can_be_changed(name: str) -> None:
    for made in shapes(records.dataclass):
        instance = made(1) if "x" in made.__slots__ else made(**({"x": 1} if hasattr(made, "x") else {}))
        before = repr(instance)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(instance, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(instance, name)
        assert repr(instance) == before


def test_classes_below_one_of_many_fields_have_attributes_of_their_own() -> None:
    for made in shapes(records.dataclass):

        class Lower(made):  # type: ignore[misc,valid-type]
            """Not a data class."""

        instance = Lower(1) if "x" in made.__slots__ or hasattr(made, "x") else Lower()
        instance.own = 2
        assert (type(instance), instance.own) == (Lower, 2)
        if hasattr(made, "x"):
            assert instance.x == 1
            with pytest.raises(dataclasses.FrozenInstanceError):
                instance.x = 3


@records.dataclass(frozen=True, slots=True)
class One:
    """One field, which may be nothing."""

    value: object


@records.dataclass(frozen=True, slots=True)
class Two:
    """Several."""

    value: object
    other: One
    same: object = dataclasses.field(default=None, compare=False)


@records.dataclass(frozen=True, slots=True)
class Nothing:
    """No field."""


def test_pickles_and_copies_come_back() -> None:
    for value in (None, 0, (), "text", [1], One(None)):
        for instance in (One(value), Two(value, One(value), [value]), Nothing()):
            for level in range(2, pickle.HIGHEST_PROTOCOL + 1):
                back = pickle.loads(pickle.dumps(instance, level))
                assert back == instance
                assert repr(back) == repr(instance)
            assert repr(copy.copy(instance)) == repr(copy.deepcopy(instance)) == repr(instance)


def test_what_names_itself_is_shown() -> None:
    inner: list[object] = []
    instance = One(inner)
    inner.append(instance)
    assert repr(instance) == "One(value=[...])"


@records.dataclass(slots=True)
class Changing:
    """Not frozen."""

    x: int
    y: list[int] = dataclasses.field(default_factory=list)


def changing_shapes(made_by: Decorator) -> list[type[Any]]:
    """Classes that are not frozen, as mcheck has them."""

    class Plain:
        """A default, and a field that is no parameter."""

        x: int
        y: list[int] = dataclasses.field(default_factory=list, compare=False)
        z: str = dataclasses.field(default="z", repr=False)
        made: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.made = self.x if isinstance(self.x, int) else 0

    class Same:
        """Equal to itself alone."""

        x: int
        y: int = 2

    class Hashed:
        """With a hash of its own."""

        x: int
        y: int = 2

        def __hash__(self) -> int:
            return 7

    class Named:
        """By keyword alone."""

        x: int
        y: int = 2

    class Tree:
        """Never shown or compared."""

        x: int
        y: int
        a: int = 0
        b: int = 0
        c: int = 0
        d: int = 0

    return [
        made_by(slots=True)(Plain),
        made_by(slots=True, eq=False)(Same),
        made_by(slots=True)(Hashed),
        made_by(slots=True, kw_only=True)(Named),
        made_by(slots=True, eq=False, repr=False, match_args=False)(Tree),
    ]


CHANGING: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((1,), {}), ((1, 2), {}), ((), {"x": 1, "y": 2}), ((), {})]


@pytest.mark.parametrize("call", CHANGING, ids=str)
def test_what_can_be_changed_is_as_in_the_standard_library(call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, kwargs = call
    for theirs, ours in zip(*map(changing_shapes, LIBRARIES), strict=True):
        for told in (dataclasses.fields, lambda c: c.__slots__, lambda c: getattr(c, "__match_args__", None)):
            assert str(told(ours)) == str(told(theirs))
        assert (ours.__eq__ is object.__eq__) == (theirs.__eq__ is object.__eq__)
        assert (ours.__repr__ is object.__repr__) == (theirs.__repr__ is object.__repr__)
        assert (ours.__hash__ is None, ours.__hash__ is object.__hash__) == (
            theirs.__hash__ is None, theirs.__hash__ is object.__hash__
        )  # fmt: skip
        a, b = (outcome(c, *args, **kwargs) for c in (theirs, ours))
        if isinstance(a, tuple):
            assert repr(a) == repr(b)
            continue
        assert not hasattr(b, "__dict__")
        c, d = (t(*args, **kwargs) for t in (theirs, ours))
        assert (a == c) == (b == d)
        a.x = b.x = 9
        assert [getattr(a, f.name) for f in dataclasses.fields(a)] == [
            getattr(b, f.name) for f in dataclasses.fields(b)
        ]
        assert (a == c, a == a) == (b == d, b == b)


def test_what_can_be_changed_is_pickled_and_shown() -> None:
    instance = Changing(1, [2])
    assert repr(instance) == "Changing(x=1, y=[2])"
    assert pickle.loads(pickle.dumps(instance)) == copy.deepcopy(instance) == instance
    with pytest.raises(TypeError, match="unhashable"):
        hash(instance)
    del instance.x
    assert not hasattr(instance, "x")


def test_others_are_the_standard_library_s() -> None:
    @records.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """With an order."""

        x: int

    assert Ordered(1) < Ordered(2)


def test_calls_are_alike_before_and_after_methods_are_compiled() -> None:
    """Methods are interpreted at first, and compiled when they have been called often."""
    for made in shapes(records.dataclass):
        seen: dict[str, set[str]] = {}
        for _ in range(2 * records.OFTEN):
            for args, kwargs in CALLS[1:]:
                said = outcome(made, *args, **kwargs)
                text = repr((said, outcome(hash, said), said == made(1) if "x" in made.__slots__ else None))
                seen.setdefault(repr((args, kwargs)), set()).add(text)
        assert all(len(texts) == 1 for texts in seen.values())
        assert inspect.isfunction(vars(made)["__init__"])


def test_what_is_replaced_is_as_in_the_standard_library() -> None:
    for theirs, ours in zip(*map(shapes, LIBRARIES), strict=True):
        if {"x", "z"} <= {field.name for field in dataclasses.fields(ours)}:
            changed = [
                change(kind(1, z="a"), x=2) for change, kind in ((dataclasses.replace, theirs), (records.replace, ours))
            ]
            assert dataclasses.astuple(changed[0]) == dataclasses.astuple(changed[1])
            with pytest.raises(TypeError):
                records.replace(ours(1), unknown=2)
