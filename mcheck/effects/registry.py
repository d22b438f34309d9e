"""The registry of functions that make effects, by kind of operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mcheck.ir.ops import Op

Maker = Callable[..., Any]
Made = TypeVar("Made", bound=Maker)

EFFECTS: dict[type[Op], Maker] = {}


def defines_effect(*kinds: type[Op]) -> Callable[[Made], Made]:
    """Registers the function that makes the effects of operations of these kinds."""

    def register(make: Made) -> Made:
        EFFECTS.update(dict.fromkeys(kinds, make))
        return make

    return register
