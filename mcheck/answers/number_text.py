"""Formatting of values, the same in steps, states and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

UNKNOWN = "unknown"
MEANING = "unknown: uninitialised, or the result of a division by zero; shared memory starts with arbitrary contents"
"""Explanation of the word ``unknown`` where it is shown."""
_PLAIN = 8
"""The largest size in bytes of a value that is shown as one number."""
_RUNS = 6
"""The maximum number of runs of equal elements that are shown of a wide value."""


def format_number(value: int) -> str:
    """A number in decimal, or in hexadecimal if it is large."""
    return str(value) if value < 1 << 32 else hex(value)


def format_contents(value: int | None, size: int, unit: int) -> str:
    """The value of ``size`` bytes: a number, or elements of ``unit`` bytes as in a PTX initialiser, ``{7, 7, 1, 0
    x13}``.
    """
    if value is None:
        return UNKNOWN
    if size <= _PLAIN:
        return format_number(value)
    unit = next(n for n in (unit if unit > 1 else 4, 4, 2, 1) if n <= _PLAIN and size % n == 0)
    parts = [format_number(value >> 8 * at & (1 << 8 * unit) - 1) for at in range(0, size, unit)]
    runs = [(text, len(list(run))) for text, run in groupby(parts)]
    told = [f"{text} x{count}" if count > 4 else ", ".join([text] * count) for text, count in runs[:_RUNS]]
    left = sum(count for _, count in runs[_RUNS:])
    return f"{{{', '.join(told)}{f', and {left} more' if left else ''}}}"


def format_ranges(numbers: Sequence[int], most: int = 4) -> str:
    """Ascending numbers as inclusive ranges, at most ``most`` of them: ``0..3, 16``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a}..{b}" for a, b in runs[:most]]
    return ", ".join(shown) + (", …" if len(runs) > most else "")
