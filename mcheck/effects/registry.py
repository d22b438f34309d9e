"""The registry of functions that make plans, by kind of operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mcheck.ir.ops import Op

Maker = Callable[..., Any]
Made = TypeVar("Made", bound=Maker)

PLANS: dict[type[Op], Maker] = {}


def plans(*kinds: type[Op]) -> Callable[[Made], Made]:
    """Registers the function that makes the plans of operations of these kinds."""

    def register(make: Made) -> Made:
        PLANS.update(dict.fromkeys(kinds, make))
        return make

    return register
