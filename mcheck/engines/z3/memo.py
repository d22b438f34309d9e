"""Memoised methods, whose results live as long as the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def memo(method: F) -> F:
    """Caches the results of a method by its positional arguments."""
    name = "_memo_" + method.__name__

    def remembered(self: Any, *arguments: Any) -> Any:
        known = self.__dict__.setdefault(name, {})
        if arguments not in known:
            known[arguments] = method(self, *arguments)
        return known[arguments]

    remembered.__doc__ = method.__doc__
    return cast(F, remembered)
