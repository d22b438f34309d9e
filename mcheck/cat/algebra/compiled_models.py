"""The compiled models, each once per process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcheck.cat.algebra.tape import Tape, compile_model
from mcheck.cat.ast import Model

T = TypeVar("T")

MOST_TAPES = 16
_TAPES: dict[int, tuple[Model, Tape]] = {}


def tape_of(model: Model) -> Tape:
    """The compiled model, once per process; known by its identity, for to compare two models is to walk all of both."""
    known = _TAPES.get(id(model))
    if known is not None:
        return known[1]
    tape = compile_model(model)
    remember_tape(model, tape)
    return tape


def remember_tape(model: Model, tape: Tape) -> None:
    """From now on this is the tape of the model."""
    if len(_TAPES) >= MOST_TAPES:
        _TAPES.clear()
    _TAPES[id(model)] = (model, tape)


def once_per_tape(function: Callable[[Tape], T]) -> Callable[[Tape], T]:
    """A function of tapes that remembers what it said, by identity as well."""
    known: dict[int, tuple[Tape, T]] = {}

    def remembering(tape: Tape) -> T:
        found = known.get(id(tape))
        if found is None or found[0] is not tape:
            if len(known) >= MOST_TAPES:
                known.clear()
            found = known[id(tape)] = (tape, function(tape))
        return found[1]

    return remembering
