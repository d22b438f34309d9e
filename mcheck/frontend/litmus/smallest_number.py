"""The smallest number that a constant which is ``any`` may be: with it every role has threads, every array elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcheck.base.errors import InputError

TOO_SMALL = ("LIT043", "LIT025")
"""Codes of errors of numbers that are too small: a range of places, or an array, is empty."""
LARGEST = 8
"""The largest number that may be the smallest one."""

Built = TypeVar("Built")


def build_smallest(build: Callable[[int], Built], first: int) -> tuple[int, Built]:
    """The smallest number from ``first`` on that is not too small, and what is built with it. Raises ``InputError`` if
    the file has another error with it, and that of ``first`` if all numbers are too small.
    """
    small: InputError | None = None
    for number in range(first, LARGEST + 1):
        try:
            return number, build(number)
        except InputError as error:
            if error.code not in TOO_SMALL:
                raise small or error from None
            small = small or error
    assert small is not None, "one number at least was tried"
    raise small
