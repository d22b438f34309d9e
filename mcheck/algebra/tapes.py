"""The compiled models, each once per process."""

from __future__ import annotations

from mcheck.algebra.tape import Tape, compile_model
from mcheck.cat.ast import Model

MOST_TAPES = 16
_TAPES: dict[int, tuple[Model, Tape]] = {}


def tape_of(model: Model) -> Tape:
    """The compiled model, once per process; known by its identity, for to compare two models is to walk all of both."""
    known = _TAPES.get(id(model))
    if known is None:
        if len(_TAPES) >= MOST_TAPES:
            _TAPES.clear()
        known = _TAPES[id(model)] = (model, compile_model(model))
    return known[1]
